"""Drawn photos of alarm screens and scanned table pages, with the truth known: for tests and measures of OCR.

Everything comes from a seed. Screens look as controls show them (a FANUC list, a SINUMERIK alarm line, a Haas list, a
drive's panel, with positions, date and program number around the alarm); effects are what a phone in a workshop does
to them. Latin screens need no font but the one Pillow carries; Chinese ones need a font with Chinese in it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from retrieval.records import FaultCode

Style = Literal[
    "fanuc", "fanuc_green", "sinumerik", "sinumerik_light", "haas", "drive_panel", "fanuc_zh", "sinumerik_zh"
]
Effect = Literal["none", "glare", "tilt", "noise", "moire", "blur", "jpeg", "dark", "far", "mixed"]
STYLES: tuple[Style, ...] = get_args(Style)
EFFECTS: tuple[Effect, ...] = get_args(Effect)
CHINESE_FONTS = (
    "DroidSansFallbackFull.ttf",
    "DroidSansFallback.ttf",
    "wqy-microhei.ttc",
    "NotoSansCJK-Regular.ttc",
    "NotoSansSC-Regular.ttf",
)
Pixels = NDArray[np.float32]
Colour = tuple[int, int, int]
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


@dataclass(frozen=True)
class Alarm:
    """An alarm as a screen shows it: its code and its message in both languages."""

    vendor: str
    family: str
    code: str
    en: str
    zh: str

    @property
    def fault_code(self) -> FaultCode:
        """The key of the code."""
        return FaultCode(vendor=self.vendor, family=self.family, code=self.code)


ALARMS = tuple(
    Alarm(vendor, family, code, en, zh)
    for vendor, family, rows in (
        (
            "fanuc",
            "30i",
            (
                ("SV0401", "(X) IMPROPER V_READY OFF", "(X) V就绪信号关断异常"),
                ("SV0410", "(Y) EXCESS ERROR (STOP)", "(Y) 停止时误差过大"),
                ("SV0411", "(Z) EXCESS ERROR (MOVING)", "(Z) 移动时误差过大"),
                ("SV0436", "(X) SOFTTHERMAL(OVC)", "(X) 软过热继电器(OVC)"),
                ("SV0430", "(Z) SV MOTOR OVERHEAT", "(Z) 伺服电机过热"),
                ("SV0417", "(Y) ILL DGTL SERVO PARAMETER", "(Y) 伺服参数非法"),
                ("OT0500", "(X) + OVERTRAVEL (SOFT 1)", "(X) +超程(软限位1)"),
                ("OT0501", "(Z) - OVERTRAVEL (SOFT 1)", "(Z) -超程(软限位1)"),
                ("OH0701", "FAN MOTOR STOP", "风扇电机停止"),
                ("DS0300", "APC ALARM: NEED REF RETURN", "APC报警: 需回参考点"),
                ("DS0307", "APC ALARM: BATTERY LOW 1", "APC报警: 电池电压低1"),
                ("SP9001", "(S1) MOTOR OVERHEAT", "(S1) 主轴电机过热"),
                ("PS0010", "IMPROPER G-CODE", "G代码不正确"),
                ("SW0100", "PARAMETER ENABLE SWITCH ON", "参数写入开关处于打开"),
                ("EX1005", "DOOR OPEN", "防护门打开"),
                ("BG0085", "COMMUNICATION ERROR", "通讯错误"),
            ),
        ),
        (
            "siemens",
            "sinumerik",
            (
                ("25050", "Axis X1 contour monitoring", "轴 X1 轮廓监控"),
                ("10720", "Channel 1 block axis Z1 end point is behind software limit", "通道1 轴Z1 终点在软限位之后"),
                ("10620", "Channel 1 axis Y1 reaches software limit switch +", "通道1 轴Y1 到达软限位开关 +"),
                ("3000", "Emergency stop", "急停"),
                ("21612", "Channel 1 axis X1 enable reset while moving", "通道1 轴X1 运动时使能被复位"),
                ("25201", "Axis Z1 drive fault", "轴 Z1 驱动故障"),
            ),
        ),
        (
            "siemens",
            "sinamics",
            (
                ("F30021", "Power unit: ground fault", "功率单元：接地故障"),
                ("F30002", "Power unit: DC link overvoltage", "功率单元：直流母线过压"),
                ("F07011", "Drive: motor overtemperature", "驱动：电机过热"),
                ("F30005", "Power unit: overload I2t", "功率单元：过载 I2t"),
                ("F07900", "Drive: motor blocked", "驱动：电机堵转"),
                ("A07089", "Changing over units", "单位切换"),
            ),
        ),
        (
            "haas",
            "ngc",
            (
                ("103", "X AXIS SERVO ERROR TOO LARGE", "X轴伺服误差过大"),
                ("104", "Y AXIS SERVO ERROR TOO LARGE", "Y轴伺服误差过大"),
                ("120", "LOW AIR PRESSURE", "气压低"),
                ("123", "SPINDLE DRIVE FAULT", "主轴驱动故障"),
                ("146", "X LIMIT SWITCH", "X轴限位开关"),
                ("9.993", "TOOL CHANGER SHORT CIRCUIT", "换刀装置短路"),
                ("1320", "SPINDLE BRAKE ENGAGED", "主轴制动器抱紧"),
            ),
        ),
    )
    for code, en, zh in rows
)


@dataclass(frozen=True)
class Photo:
    """A drawn photo with its truth: the alarms on the screen, in order from the top."""

    image: Image.Image
    alarms: tuple[Alarm, ...]
    style: Style
    effect: Effect

    @property
    def codes(self) -> tuple[FaultCode, ...]:
        """Keys of the alarms on the screen."""
        return tuple(alarm.fault_code for alarm in self.alarms)


@lru_cache(maxsize=32)
def _font(size: int, chinese: bool) -> Font:
    for name in CHINESE_FONTS if chinese else ("DejaVuSansMono.ttf", "LiberationMono-Regular.ttf"):
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    if chinese:
        raise FileNotFoundError(f"no font with Chinese found; install one of {', '.join(CHINESE_FONTS)}")
    return ImageFont.load_default(size)


def chinese_font_found() -> bool:
    """Whether this machine has a font to draw Chinese screens with."""
    try:
        _font(20, chinese=True)
    except FileNotFoundError:
        return False
    return True


def _draw(image: Image.Image, x: int, y: int, text: str, size: int, ink: Colour) -> None:
    """Text, run by run: a font that has Chinese may lack Latin letters."""
    pen = ImageDraw.Draw(image)
    at = float(x)
    for run in re.findall(r"[\x00-\x7f]+|[^\x00-\x7f]+", text):
        font = _font(size, chinese=not run.isascii())
        pen.text((at, y), run, font=font, fill=ink)
        at += pen.textlength(run, font=font)


@dataclass
class _Canvas:
    """A screen under way: lines of text on a ground of one colour."""

    image: Image.Image
    ink: Colour

    @classmethod
    def blank(cls, ground: Colour, ink: Colour) -> _Canvas:
        return cls(Image.new("RGB", (1024, 768), ground), ink)

    def write(self, x: int, y: int, text: str, size: int = 26, ink: Colour | None = None) -> None:
        _draw(self.image, x, y, text, size, ink or self.ink)

    def bar(self, y: int, height: int, colour: Colour) -> None:
        ImageDraw.Draw(self.image).rectangle((0, y, self.image.width, y + height), fill=colour)


def _positions(rng: np.random.Generator) -> list[str]:
    return [f"{axis} {rng.uniform(-400, 400):10.3f}" for axis in "XYZ"]


def _clock(rng: np.random.Generator) -> tuple[str, str]:
    day = f"2026/{rng.integers(1, 13):02d}/{rng.integers(1, 29):02d}"
    return day, f"{rng.integers(0, 24):02d}:{rng.integers(0, 60):02d}:{rng.integers(0, 60):02d}"


def _message(alarm: Alarm, chinese: bool) -> str:
    return alarm.zh if chinese else alarm.en


def _fanuc(rng: np.random.Generator, alarms: Sequence[Alarm], green: bool, chinese: bool) -> Image.Image:
    ground, ink = ((6, 26, 10), (70, 235, 90)) if green else ((22, 26, 34), (232, 232, 226))
    canvas = _Canvas.blank(ground, ink)
    day, time = _clock(rng)
    canvas.write(30, 20, "报警信息" if chinese else "ALARM MESSAGE")
    canvas.write(640, 20, f"O{rng.integers(1, 9999):04d} N{rng.integers(0, 99990):05d}")
    for number, alarm in enumerate(alarms):
        y = 90 + 52 * number
        canvas.write(30, y, f"{alarm.code} ", ink=ink if green else (255, 120, 110))
        canvas.write(150, y, _message(alarm, chinese), ink=ink if green else (255, 120, 110))
    for number, line in enumerate(_positions(rng)):
        canvas.write(60, 420 + 44 * number, line, size=30)
    canvas.write(520, 420, f"F {rng.integers(0, 5000):6d} MM/MIN")
    canvas.write(520, 464, f"S {rng.integers(0, 12000):6d} RPM")
    canvas.write(520, 508, f"T{rng.integers(1, 30):04d}   H{rng.integers(1, 30):02d}")
    canvas.write(30, 640, "A>_")
    canvas.write(30, 690, f"MEM **** *** ***   ALM  {time}")
    canvas.write(640, 690, day)
    return canvas.image


def _sinumerik(rng: np.random.Generator, alarms: Sequence[Alarm], light: bool, chinese: bool) -> Image.Image:
    ground, ink = ((226, 230, 236), (20, 24, 40)) if light else ((28, 36, 60), (235, 238, 245))
    canvas = _Canvas.blank(ground, ink)
    day, time = _clock(rng)
    canvas.write(20, 14, "SINUMERIK 840D sl", size=24)
    canvas.write(700, 14, f"{day[2:].replace('/', '.')} {time}", size=22)
    canvas.bar(56, 44, (190, 30, 30))
    first, *others = alarms
    canvas.write(16, 62, f"{first.code}  {_message(first, chinese)}", size=24, ink=(255, 255, 255))
    for number, alarm in enumerate(others):
        canvas.write(16, 120 + 44 * number, f"{alarm.code}  {_message(alarm, chinese)}", size=24)
    canvas.write(30, 300, "WCS   Position [mm]   Feedrate")
    for number, line in enumerate(_positions(rng)):
        canvas.write(30, 350 + 46 * number, line, size=30)
    canvas.write(560, 350, f"F = {rng.uniform(0, 4000):.3f}")
    canvas.write(560, 396, f"S1 = {rng.uniform(0, 9000):.1f}")
    canvas.write(30, 600, f"N{rng.integers(1, 400) * 10} G1 X{rng.integers(10, 99)} F{rng.integers(2, 30) * 100}")
    canvas.write(30, 690, "Reset   CHAN1   Jog")
    return canvas.image


def _haas(rng: np.random.Generator, alarms: Sequence[Alarm]) -> Image.Image:
    canvas = _Canvas.blank((240, 240, 236), (16, 16, 16))
    day, time = _clock(rng)
    canvas.bar(0, 48, (40, 60, 110))
    canvas.write(20, 10, "ALARMS", ink=(255, 255, 255))
    canvas.write(640, 10, f"{day.replace('/', '-')} {time}", ink=(255, 255, 255), size=22)
    canvas.write(30, 70, "ALARM NO.   MESSAGE")
    for number, alarm in enumerate(alarms):
        canvas.write(30, 120 + 48 * number, f"{alarm.code:<11} {_message(alarm, False)}", ink=(190, 0, 0))
    canvas.write(30, 380, f"O{rng.integers(1, 99999):05d}.NC   N{rng.integers(1, 300)}")
    for number, line in enumerate(_positions(rng)):
        canvas.write(30, 440 + 44 * number, line, size=28)
    canvas.write(520, 440, f"SPINDLE SPEED: {rng.integers(0, 8100)} RPM", size=24)
    canvas.write(520, 484, f"FEED RATE: {rng.uniform(0, 400):.4f} IPM", size=24)
    canvas.write(520, 528, f"M30 COUNTER #1: {rng.integers(0, 900)}", size=24)
    canvas.write(30, 690, "HAAS VF-2   MEM   ALARM")
    return canvas.image


def _drive_panel(_rng: np.random.Generator, alarms: Sequence[Alarm]) -> Image.Image:
    canvas = _Canvas.blank((40, 42, 44), (210, 214, 216))
    draw = ImageDraw.Draw(canvas.image)
    draw.rectangle((190, 240, 834, 500), fill=(196, 208, 168))
    canvas.write(360, 120, "SINAMICS", size=56)
    canvas.write(330, 290, alarms[0].code, size=110, ink=(24, 30, 16))
    canvas.write(330, 600, "RDY   OK   DRV", size=40)
    return canvas.image


def _of(vendor: str, *families: str) -> list[Alarm]:
    return [alarm for alarm in ALARMS if alarm.vendor == vendor and alarm.family in families]


def _screen(style: Style, rng: np.random.Generator) -> tuple[Image.Image, tuple[Alarm, ...]]:
    if style in ("fanuc", "fanuc_green", "fanuc_zh"):
        pool = _of("fanuc", "30i")
    elif style == "haas":
        pool = _of("haas", "ngc")
    elif style == "drive_panel":
        pool = _of("siemens", "sinamics")
    else:
        pool = _of("siemens", "sinumerik")
    count = 1 if style == "drive_panel" else int(rng.integers(1, 4))
    alarms = tuple(pool[index] for index in rng.choice(len(pool), count, replace=False))
    if style in ("fanuc", "fanuc_green", "fanuc_zh"):
        return _fanuc(rng, alarms, green=style == "fanuc_green", chinese=style == "fanuc_zh"), alarms
    if style == "haas":
        return _haas(rng, alarms), alarms
    if style == "drive_panel":
        return _drive_panel(rng, alarms), alarms
    return _sinumerik(rng, alarms, light=style == "sinumerik_light", chinese=style == "sinumerik_zh"), alarms


def _pixels(image: Image.Image) -> Pixels:
    return np.asarray(image, dtype=np.float32)


def _picture(pixels: Pixels) -> Image.Image:
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def _glare(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """A lamp's reflection on the upper half, where the alarms stand."""
    height, width = image.height, image.width
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    centre_x, centre_y = rng.uniform(0.15, 0.6) * width, rng.uniform(0.1, 0.35) * height
    radius = rng.uniform(0.1, 0.2) * width
    spot = np.exp(-((x - centre_x) ** 2 + (1.6 * (y - centre_y)) ** 2) / (2 * radius**2)) * rng.uniform(0.6, 0.95)
    pixels = _pixels(image)
    return _picture((pixels + (255 - pixels) * spot[:, :, None]).astype(np.float32))


def _coefficients(target: Sequence[tuple[float, float]], source: Sequence[tuple[float, float]]) -> list[float]:
    """Eight coefficients of the perspective that carries `target` corners to `source` ones, as Pillow wants them."""
    rows: list[list[float]] = []
    for (x, y), (u, v) in zip(target, source, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    solved: Any = np.linalg.solve(np.array(rows), np.array(source).reshape(8))
    return [float(value) for value in solved]


def _tilt(image: Image.Image, rng: np.random.Generator, share: float = 0.12) -> Image.Image:
    """Seen from the side: each corner moved by up to `share` of the size."""
    width, height = image.size
    corners = [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)]
    inward = [(1, 1), (-1, 1), (-1, -1), (1, -1)]
    moved = [
        (x + sx * rng.uniform(0, share) * width, y + sy * rng.uniform(0, share) * height)
        for (x, y), (sx, sy) in zip(corners, inward, strict=True)
    ]
    return image.transform(
        image.size,
        Image.Transform.PERSPECTIVE,
        _coefficients(moved, corners),
        Image.Resampling.BICUBIC,
        fillcolor=(88, 86, 82),
    )


def _noise(image: Image.Image, rng: np.random.Generator, low: float = 20.0, high: float = 45.0) -> Image.Image:
    pixels = _pixels(image)
    return _picture((pixels + rng.normal(0, rng.uniform(low, high), pixels.shape)).astype(np.float32))


def _moire(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Bands where the grid of the display meets that of the camera."""
    y, x = np.mgrid[0 : image.height, 0 : image.width].astype(np.float32)
    angle, period = rng.uniform(0.1, 1.2), rng.uniform(4, 11)
    wave = np.sin(2 * np.pi * (x * np.cos(angle) + y * np.sin(angle)) / period)
    factor = 1 - rng.uniform(0.15, 0.4) * (0.5 + 0.5 * wave)
    return _picture((_pixels(image) * factor[:, :, None] + 12 * (1 + wave[:, :, None])).astype(np.float32))


def _blur(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(rng.uniform(2.0, 4.5)))


def _jpeg(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    packed = io.BytesIO()
    share = float(rng.uniform(0.4, 0.7))
    small = image.resize((int(image.width * share), int(image.height * share)), Image.Resampling.BILINEAR)
    small.save(packed, "JPEG", quality=int(rng.integers(8, 25)))
    packed.seek(0)
    return Image.open(packed).convert("RGB")


def _dark(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    dimmed = _picture(_pixels(image) * np.float32(rng.uniform(0.1, 0.25)) + 6)
    return _noise(dimmed, rng, 4, 9)


def _far(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """The screen in a corner of a wide picture."""
    share = float(rng.uniform(0.3, 0.45))
    small = image.resize((int(image.width * share), int(image.height * share)), Image.Resampling.BILINEAR)
    wide = Image.new("RGB", image.size, (112, 110, 104))
    wide.paste(small, (int(rng.integers(0, 500)), int(rng.integers(0, 400))))
    return _noise(wide, rng, 3, 8)


def _mixed(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """A hurried photo: slanted, out of focus, grainy, packed small."""
    slanted = _tilt(image, rng, 0.06).filter(ImageFilter.GaussianBlur(rng.uniform(1.0, 2.0)))
    return _jpeg(_noise(slanted, rng, 10, 20), rng)


_APPLY: dict[Effect, Callable[[Image.Image, np.random.Generator], Image.Image]] = {
    "none": lambda image, _rng: image,
    "glare": _glare,
    "tilt": _tilt,
    "noise": _noise,
    "moire": _moire,
    "blur": _blur,
    "jpeg": _jpeg,
    "dark": _dark,
    "far": _far,
    "mixed": _mixed,
}


def alarm_photo(seed: int, style: Style, effect: Effect = "none") -> Photo:
    """One photo; the same three arguments give the same pixels on a machine with the same fonts.

    Raises:
        FileNotFoundError: a Chinese style, and no font with Chinese on this machine.
    """
    rng = np.random.default_rng((seed, STYLES.index(style), EFFECTS.index(effect)))
    screen, alarms = _screen(style, rng)
    framed = Image.new("RGB", (1160, 900), (62, 60, 58))
    framed.paste(screen, (68, 66))
    held = framed.rotate(float(rng.uniform(-1.5, 1.5)), Image.Resampling.BICUBIC, fillcolor=(62, 60, 58))
    return Photo(_APPLY[effect](held, rng), alarms, style, effect)


def alarm_photos(count: int, seed: int = 0, styles: Sequence[Style] = STYLES) -> Iterator[Photo]:
    """`count` photos that go through styles and effects in turn, so that each meets each.

    Chinese styles are left out on a machine without a Chinese font.
    """
    usable = [style for style in styles if not style.endswith("_zh") or chinese_font_found()]
    for number in range(count):
        style = usable[number % len(usable)]
        yield alarm_photo(seed + number, style, EFFECTS[(number // len(usable)) % len(EFFECTS)])


def scanned_page(rows: Sequence[Sequence[str]], *, heading: str = "", seed: int = 0) -> Image.Image:
    """A page of a manual as a scanner gives it: a heading and a table without rules, slightly turned and grained.

    Args:
        rows: the cells of the table, header row first; at most four columns; a cell may have line breaks.
        heading: a line above the table.
        seed: of the grain and the turn.
    """
    rng = np.random.default_rng(seed)
    page = Image.new("RGB", (1654, 2339), (250, 249, 245))  # A4 at 200 dpi
    y = 150
    if heading:
        _draw(page, 120, y, heading, 44, (20, 20, 20))
        y += 110
    lefts = (120, 320, 740, 1180)
    for row in rows:
        lines = max(cell.count("\n") + 1 for cell in row)
        for left, cell in zip(lefts, row, strict=False):
            for number, line in enumerate(cell.split("\n")):
                _draw(page, left, y + 34 * number, line, 22, (24, 24, 24))
        y += 34 * lines + 34
    turned = page.rotate(float(rng.uniform(-0.6, 0.6)), Image.Resampling.BICUBIC, fillcolor=(250, 249, 245))
    return _noise(turned, rng, 4, 9)
