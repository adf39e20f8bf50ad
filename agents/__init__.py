"""From a question to an answer: plan, graph, judge, verify, safety."""
