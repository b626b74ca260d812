"""Calls that are awaited once their function is asynchronous."""

from __future__ import annotations

import pytest
from support.renames import awaited, results

FETCH = """\
import sys


def fetch(host):
    return host


async def risk(host):
    return fetch(host).level


def warn(hosts):
    first = fetch(hosts[0])
    return first, [fetch(each) for each in hosts[1:]]


def main():
    sys.exit(fetch("a"))


names = list(map(fetch, []))
"""
AFTER = """\
import sys


async def fetch(host):
    return host


async def risk(host):
    return (await fetch(host)).level


async def warn(hosts):
    first = await fetch(hosts[0])
    return first, [fetch(each) for each in hosts[1:]]


def main():
    sys.exit(asyncio.run(fetch("a")))


names = list(map(fetch, []))
"""
DEF = "def fetch(host)", "async def fetch(host)"


def test_awaited_calls_make_functions_asynchronous() -> None:
    (found,) = awaited({"net.py": FETCH}, *DEF)
    assert found.label.startswith("await `fetch` at ")
    made = results(found)["net.py"]
    assert made == AFTER.replace("[fetch(each)", "[await fetch(each)")


def test_other_files_that_import_it_follow() -> None:
    other = "from net import fetch\n\n\ndef load():\n    x = fetch('b')\n    return x\n"
    (found,) = awaited({"net.py": FETCH, "app.py": other}, *DEF)
    assert results(found)["app.py"] == (
        "from net import fetch\n\n\nasync def load():\n    x = await fetch('b')\n    return x\n"
    )


@pytest.mark.parametrize(
    "code",
    [
        "async def f():\n    await fetch(1)\n",
        "async def f():\n    await asyncio.gather(fetch(1), fetch(2))\n",
        "async def f():\n    task = asyncio.create_task(fetch(1))\n",
        "def f():\n    return sum(fetch(x) for x in xs)\n",
        "def f():\n    return sorted(xs, key=lambda x: fetch(x))\n",
        "@app.route\ndef f():\n    return fetch(1)\n",
        "def f():\n    yield fetch(1)\n",
        "class A:\n    def __init__(self):\n        self.x = fetch(1)\n",
        "fetch(1)\n",
        "def f(fetch):\n    return fetch(1)\n",
        "def f():\n    return other.fetch(1)\n",
        "# fetch(1)\ns = 'fetch(1)'\n",
    ],
)
def test_awaited_or_unawaitable_calls_stay(code: str) -> None:
    text = f"def fetch(host):\n    return host\n\n\n{code}"
    assert awaited({"net.py": text}, *DEF) == []


TS = """\
export class Store {
  load(id: string): Recipe {
    return this.read(id);
  }
  both(): Recipe[] {
    return [this.load("a"), this.load("b")];
  }
  title(id: string): string {
    return this.load(id).title;
  }
}

export function show(store: Store, ids: string[]): string {
  const first = store.load(ids[0]);
  ids.forEach((id) => store.load(id));
  store.load("x").then(print);
  return first.title;
}
"""


def test_scripts_promise_what_they_return() -> None:
    (found,) = awaited(
        {"store.ts": TS},
        "  load(id: string): Recipe {",
        "  async load(id: string): Promise<Recipe> {",
    )
    made = results(found)["store.ts"]
    assert (
        "  async title(id: string): Promise<string> {\n    return (await this.load(id)).title;"
        in made
    )
    assert "export async function show(store: Store, ids: string[]): Promise<string> {" in made
    assert "  const first = await store.load(ids[0]);" in made
    assert "ids.forEach((id) => store.load(id));" in made
    assert 'store.load("x").then(print);' in made
    assert '[this.load("a"), this.load("b")]' in made


def test_named_arrows_become_async_and_components_not() -> None:
    text = (
        "export function load(id: string): Recipe {\n  return read(id);\n}\n"
        "const title = (id: string): string => load(id).title;\n"
        "const Card = ({ id }: P) => {\n  const recipe = load(id);\n  return <p>{recipe}</p>;\n};\n"
        "ids.map((id) => load(id));\n"
    )
    new = "export async function load(id: string): Promise<Recipe> {"
    (found,) = awaited({"a.tsx": text}, "export function load(id: string): Recipe {", new)
    wanted = "const title = async (id: string): Promise<string> => (await load(id)).title;"
    assert results(found)["a.tsx"] == text.replace(text.split("\n")[3], wanted).replace(
        text.split("\n")[0], new
    )


@pytest.mark.parametrize(
    ("path", "head", "block", "function"),
    [
        ("net.rs", "fn fetch(a: u8)", "impl Twice for Net", "fn twice() -> u8"),
        ("net.rs", "fn fetch(a: u8)", "trait Twice", "fn twice() -> u8"),
        ("net.ts", "function fetch(a)", "class Net implements Twice", "twice()"),
    ],
)
def test_functions_fixed_by_an_interface_stay(
    path: str, head: str, block: str, function: str
) -> None:
    fetch, call = f"{head} {{\n    return a\n}}\n", "return fetch(1)"
    assert not awaited(
        {path: f"{fetch}\n{block} {{\n    {function} {{\n        {call}\n    }}\n}}\n"},
        head,
        f"async {head}",
    )


def test_rust_awaits_behind_the_call() -> None:
    text = "fn fetch(a: u8) -> u8 {\n    a\n}\n\npub fn twice(a: u8) -> u8 {\n    fetch(a) + 1\n}\n"
    (found,) = awaited({"net.rs": text}, "fn fetch(a: u8)", "async fn fetch(a: u8)")
    assert "pub async fn twice(a: u8) -> u8 {\n    fetch(a).await + 1\n" in results(found)["net.rs"]
