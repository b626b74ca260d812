"""Members added to a type, at the other places that list its members."""

from __future__ import annotations

import pytest
from support.renames import members, results

PYTHON = """\
class Loan:
    def __init__(self, book: str, reader: str, due: int = 14) -> None:
        self.book = book
        self.reader = reader
        self.due = due

    def to_dict(self):
        return {"book": self.book, "reader": self.reader, "due": self.due, "v": 2}

    @classmethod
    def from_row(cls, row):
        return cls(
            book=row["book"],
            reader=row["reader"],
            due=row["due"],
        )

    def __eq__(self, other):
        return (
            self.book == other.book
            and self.reader == other.reader
            and self.due == other.due
        )

    def __repr__(self):
        return f"Loan(book={self.book}, reader={self.reader}, due={self.due})"

    def label(self):
        number = "%s %s %s" % (self.book, self.reader, self.due)
        return show(self.book, self.reader, self.due), number, f"{self.book}{self.reader}{self.due}"


def copy(loan, other):
    store({"book": loan.book, "reader": loan.reader, "due": loan.due})
    return Card(book=loan.book, reader=loan.reader, due=loan.due)
"""
PARAMETER = ("due: int = 14)", "due: int = 14, fee: int = 0)")
TS = """\
class Trip {
  private from: string;
  private to: string;
  private seats: number;

  constructor(from: string, to: string, seats: number) {
    this.from = from;
    this.to = to;
    this.seats = seats;
  }

  toJSON() {
    return {
      from: this.from,
      to: this.to, // the last stop
      seats: this.seats,
    };
  }

  reversed() {
    return new Trip(this.to, this.from, this.seats);
  }

  copy() {
    return new Trip(this.from, this.to, this.seats);
  }
}
"""
GO = """\
type Lamp struct {
	Watt  int
	Lumen int
	Kind  string
}

func NewLamp(watt int, lumen int, kind string) *Lamp {
	return &Lamp{
		Watt:  watt,
		Lumen: lumen,
		Kind:  kind,
	}
}

func (l *Lamp) Row() []any {
	return []any{l.Watt, l.Lumen, l.Kind}
}

func other(l Lamp) Bulb {
	return Bulb{Watt: l.Watt, Lumen: l.Lumen, Kind: l.Kind}
}
"""
RUST = """\
pub struct Tree {
    pub height: f32,
    pub girth: f32,
    pub age: u32,
}

impl Tree {
    pub fn grown(&self, by: f32) -> Tree {
        let age = self.age + 1;
        Tree { height: self.height, girth: self.girth, age: self.age }
    }

    pub fn key(&self) -> (f32, f32, u32) {
        (self.height, self.girth, self.age)
    }
}
"""


def one(path: str, text: str, *changes: tuple[str, str]) -> str:
    """Return the text after the only new member was added everywhere."""
    (found,) = members(path, text, *changes)
    (result,) = results(found).values()
    return result


def test_a_parameter_of_a_python_constructor() -> None:
    (found,) = members("a.py", PYTHON, PARAMETER)
    assert found.label == "add `fee` beside `due` at 5 places"
    (after,) = results(found).values()
    added = set(after.split("\n")) - set(PYTHON.replace(*PARAMETER).split("\n"))
    assert {line.strip() for line in added} == {
        "self.fee = fee",
        'return {"book": self.book, "reader": self.reader, "due": self.due, "fee": self.fee, '
        '"v": 2}',
        'fee=row["fee"],',
        "and self.fee == other.fee",
        'return f"Loan(book={self.book}, reader={self.reader}, due={self.due}, fee={self.fee})"',
    }


def test_a_field_of_typescript() -> None:
    field = ("seats: number;\n\n", "seats: number;\n  private dog: boolean;\n\n")
    parameter = ("seats: number)", "seats: number, dog: boolean)")
    assert "      seats: this.seats,\n      dog: this.dog,\n" in one("a.ts", TS, field)
    after = one("a.ts", TS, field, parameter)
    assert "    this.seats = seats;\n    this.dog = dog;\n" in after
    assert "new Trip(this.to, this.from, this.seats, this.dog)" in after
    assert "new Trip(this.from, this.to, this.seats, this.dog)" in after


def test_a_field_of_go_keeps_columns_and_other_types() -> None:
    field = ("Kind  string\n", "Kind  string\n\tHue   int\n")
    assert "hue" not in one("a.go", GO, field)  # nothing binds it yet
    found = members("a.go", GO, field, ("kind string)", "kind string, hue int)"))
    after = "".join(text for each in found for text in results(each).values())
    assert "\t\tKind:  kind,\n\t\tHue:   hue,\n" in after
    assert "[]any{l.Watt, l.Lumen, l.Kind, l.Hue}" in after
    assert "Bulb{Watt: l.Watt, Lumen: l.Lumen, Kind: l.Kind}" in after


def test_a_field_of_rust_between_two_others() -> None:
    after = one("a.rs", RUST, ("    pub age", "    pub crown: f32,\n    pub age"))
    assert "girth: self.girth, crown: self.crown, age: self.age }" in after
    assert "(self.height, self.girth, self.age)" in after  # a type says how many


@pytest.mark.parametrize(
    ("path", "text", "change"),
    [
        ("a.py", PYTHON, ("due: int = 14)", "due: int = 14, **more)")),
        ("a.py", PYTHON, ("due: int = 14)", "due: int = 14, _fee=0)")),
        ("a.py", PYTHON, ("due: int = 14)", "span: int = 14)")),  # a rename
        ("a.py", PYTHON, ("def copy(loan, other)", "def copy(loan, other, fee)")),
        ("a.py", PYTHON.replace("self.due = due", "self.due = due  # at most"), PARAMETER),
        ("a.py", PYTHON.replace("label", "fee"), PARAMETER),
        ("a.go", GO, ("l Lamp)", "l Lamp, n int)")),
        ("a.rs", RUST.replace("self.age }", "..*self }"), ("by: f32", "by: f32, on: u8")),
    ],
)
def test_what_says_nothing_about_other_places(
    path: str, text: str, change: tuple[str, str]
) -> None:
    found = members(path, text, change)
    assert all("self.fee = fee" not in after for one in found for after in results(one).values())
    assert not found or change == PARAMETER


def test_places_that_have_the_member_are_done() -> None:
    text = PYTHON.replace("self.due = due\n", "self.due = due\n        self.fee = fee\n")
    assert "self.fee = fee\n        self.fee" not in one("a.py", text, PARAMETER)


def test_two_spellings_are_not_guessed() -> None:
    text = TS.replace("seats: this.seats", "seats: read('seats')")
    text = text.replace("from: this.from", "from: read('from')").replace(
        "to: this.to", "to: read('to')"
    )
    field = ("seats: number;\n\n", "seats: number;\n  private dogSeat: string;\n\n")
    assert "dogSeat: read('dogSeat')" in one("a.ts", text, field)


def test_text_that_is_not_ascii() -> None:
    text = PYTHON.replace("class Loan:", "class Loan:  # größer 🎈").replace("reader", "lesérn")
    assert '"fee": self.fee' in one("a.py", text, PARAMETER)


VARIANTS = {
    "a.rs": (
        """\
enum Shell {
    Bash,
    Fish,
    Zsh,
}

const ALL: &[Shell] = &[Shell::Bash, Shell::Fish, Shell::Zsh];
const FIXED: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

fn name(shell: &Shell) -> &str {
    match shell {
        Shell::Bash => "bash",
        Shell::Fish => "fish",
        Shell::Zsh => "zsh",
    }
}

fn rank(shell: Shell) -> u8 {
    match shell {
        Shell::Bash => 1,
        Shell::Fish => 2,
        Shell::Zsh => 3,
    }
}
""",
        ("    Zsh,\n}", "    Zsh,\n    Nu,\n}"),
        ('        Shell::Zsh => "zsh",\n        Shell::Nu => "nu",\n', "Shell::Zsh, Shell::Nu]"),
    ),
    "a.ts": (
        """\
enum Tone {
  Low,
  Mid,
  High,
}

function sound(tone: Tone) {
  switch (tone) {
    case Tone.Low:
      return play('low');
    case Tone.Mid:
      return play('mid');
    case Tone.High:
      return play('high');
  }
}
""",
        ("  High,\n}", "  High,\n  Shrill,\n}"),
        ("    case Tone.Shrill:\n      return play('shrill');\n  }",),
    ),
    "a.py": (
        """\
class Tone(Enum):
    LOW = "low"
    MID = "mid"
    HIGH = "high"


NAMES = {Tone.LOW: "low", Tone.MID: "mid", Tone.HIGH: "high"}
SOUNDS = {Tone.LOW: low, Tone.MID: mid, Tone.HIGH: high}
RATES = {"LOW": 1, "MID": 2, "HIGH": 3}


def play(tone):
    match tone:
        case Tone.LOW:
            return play("low")
        case Tone.MID:
            return play("mid")
        case Tone.HIGH:
            return play("high")
""",
        ('HIGH = "high"\n', 'HIGH = "high"\n    SHRILL = "shrill"\n'),
        (
            'Tone.HIGH: "high", Tone.SHRILL: "shrill"}',
            'high")\n        case Tone.SHRILL:\n            return play("shrill")\n',
        ),
    ),
}


@pytest.mark.parametrize("path", VARIANTS)
def test_a_variant_of_an_enumeration(path: str) -> None:
    text, change, wanted = VARIANTS[path]
    after = one(path, text, change)
    assert [each for each in wanted if each not in after] == []
    assert len(after.split("\n")) <= len(text.split("\n")) + 3  # tables of numbers stay


def test_a_field_of_a_dataclass_in_calls_by_name() -> None:
    text = (
        "@dataclass\nclass Bed:\n    width: int\n    soil: str\n    sun: str\n\n\n"
        "def read(row):\n"
        '    return Bed(width=row["width"], soil=row["soil"], sun=row["sun"])\n\n\n'
        'def other(row):\n    return Box(width=row["width"], soil=row["soil"], sun=row["sun"])\n'
    )
    after = one("a.py", text, ("    sun: str\n", "    sun: str\n    wind: str\n"))
    assert 'Bed(width=row["width"], soil=row["soil"], sun=row["sun"], wind=row["wind"])' in after
    assert after.count("wind") == 3


RECORD = """\
@dataclass
class Loan:
    book: str
    reader: str
    due: int

    def copy(self):
        return Loan(book=self.book, reader=self.reader, due=self.due)
"""
TWICE = """\
if fast:
    class Loan:
        def __init__(self, book, reader, due):
            self.book = book
            self.reader = reader
            self.due = due
else:
    class Loan:
        def __init__(self, book, reader, due, *more):
            self.book = book
            self.reader = reader
            self.due = due

        def to_dict(self):
            return {"book": self.book, "reader": self.reader, "due": self.due}
"""


@pytest.mark.parametrize(
    "line", ["fee: int = field(init=False)", "fee: ClassVar[int] = 3", "fee: InitVar[int]"]
)
def test_a_member_passed_unlike_others_is_not_written(line: str) -> None:
    assert members("a.py", RECORD, ("due: int\n", f"due: int\n    {line}\n")) == []
    assert members("a.py", RECORD, ("due: int\n", "due: int\n    fee: int\n"))


@pytest.mark.parametrize("line", ["TWO = ONE", "label: str"])
def test_what_is_no_variant_of_an_enum_is_not_written(line: str) -> None:
    text = "class Kind(Enum):\n    ONE = 1\n    OUT = 2\n    ALL = 3\n\n\n"
    text += "KINDS = [Kind.ONE, Kind.OUT, Kind.ALL]\n"
    assert members("a.py", text, ("ALL = 3\n", f"ALL = 3\n    {line}\n")) == []


def test_a_type_of_the_same_name_stays_as_it_is() -> None:
    (found,) = members("a.py", TWICE, ("reader, due):", "reader, due, fee):"))
    assert found.places == 1 and results(found)["a.py"].count("fee") == 3


def test_calls_of_another_constructor_stay_as_they_are() -> None:
    assigned = "\n    this.book = book;\n    this.reader = reader;\n    this.due = due;\n  "
    text = (
        f"class Loan {{\n  Loan(int book, int reader, int due) {{{assigned}}}\n"
        f"  Loan(int book, int reader, int due, int no) {{{assigned}  this.no = no;\n }}\n"
        "  Loan copy() { return new Loan(this.book, this.reader, this.due, this.no); }\n}\n"
    )
    (found,) = members("Loan.java", text, ("int due) {", "int due, int fee) {"))
    assert "this.due, this.no)" in results(found)["Loan.java"]


@pytest.mark.parametrize(
    ("path", "head", "last"),
    [
        (
            "a.py",
            "  def __init__(self, book, reader, due):\n    super().__init__(book, due)",
            "due)",
        ),
        ("a.py", "  def __init__(self, book, reader, due):\n    self._book = book", "due)"),
        ("a.ts", "  constructor(private book, private reader, private due) {}", "private due)"),
    ],
)
def test_a_parameter_that_is_no_field_is_read_nowhere(path: str, head: str, last: str) -> None:
    if path == "a.py":
        copy = "  def copy(self):\n    return Loan(self.book, self.reader, self.due)\n"
        text = f"class Loan:\n{head}\n\n{copy}"
    else:
        copy = "  copy() { return new Loan(this.book, this.reader, this.due); }\n"
        text = f"class Loan {{\n{head}\n{copy}}}\n"
    assert members(path, text, (f"reader, {last}", f"reader, {last[:-1]}, fee)")) == []
    if path == "a.ts":
        assert members(path, text, (last, "private due, private fee)"))


def test_tuples_grow_with_what_takes_or_compares_them() -> None:
    text = """\
class Loan:
    def __init__(self, book, reader, due):
        self.book = book
        self.reader = reader
        self.due = due

    def is_first(self):
        return (self.book, self.reader, self.due) == (1, 2, 3)

    def __getstate__(self):
        return (self.book, self.reader, self.due)

    def __setstate__(self, state):
        self.book, self.reader, self.due = state
"""
    (found,) = members("a.py", text, ("reader, due):", "reader, due, fee):"))
    assert found.places == 1


def test_a_returned_array_keeps_its_length() -> None:
    text = "enum Kind {\n    One,\n    Out,\n    All,\n}\n\nfn all() -> [Kind; 3] {\n"
    text += "    [Kind::One, Kind::Out, Kind::All]\n}\n"
    assert members("a.rs", text, ("    All,\n", "    All,\n    Big,\n")) == []


def test_another_type_may_not_have_the_new_field() -> None:
    other = "\n\nclass Old(Base):\n    def new(self):\n"
    other += "        return Loan(book=self.book, reader=self.reader, due=self.due)\n"
    (found,) = members("a.py", RECORD + other, ("due: int\n", "due: int\n    fee: int\n"))
    assert results(found)["a.py"].endswith(other)


def test_slots_come_first() -> None:
    text = PYTHON.replace(
        "class Loan:\n", 'class Loan:\n    __slots__ = ("book", "reader", "due")\n'
    )
    assert members("a.py", text, PARAMETER) == []
    assert members("a.py", text.replace('"due")', '"due", "fee")', 1), PARAMETER)
