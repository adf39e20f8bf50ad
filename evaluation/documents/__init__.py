"""Documents made up for measuring: the alarms in them are known, so what a reader finds can be scored."""
