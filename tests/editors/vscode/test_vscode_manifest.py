"""The manifest of the VS Code extension agrees with the server and with the extension's code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel
from redraft.lsp.editor_settings import LspSettings
from support.editors.vscode_studio import PROPOSALS

CLIENT = Path(__file__).parents[3] / "editor-clients" / "vscode"
MANIFEST: dict[str, Any] = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
PROPERTIES: dict[str, dict[str, Any]] = {
    name.removeprefix("redraft."): schema
    for name, schema in MANIFEST["contributes"]["configuration"]["properties"].items()
}

#: Settings of the server that make no sense in this editor, which draws ghost text itself.
NOT_OFFERED = {"completionItems"}


def client_settings() -> tuple[str, ...]:
    """Beginnings of the names that the client keeps for itself."""
    source = (CLIENT / "src" / "settings.ts").read_text(encoding="utf-8")
    found = re.search(r"const OWN = \[(.*?)\]", source)
    assert found is not None
    return tuple(re.findall(r"'([^']+)'", found[1]))


def of_the_server() -> dict[str, dict[str, Any]]:
    own = client_settings()
    return {name: schema for name, schema in PROPERTIES.items() if not name.startswith(own)}


def test_the_manifest_offers_all_server_settings() -> None:
    known = {to_camel(name) for name in LspSettings.model_fields}
    assert set(of_the_server()) == known - NOT_OFFERED


def test_defaults_are_those_of_the_server() -> None:
    defaults = LspSettings().model_dump(mode="json", by_alias=True)
    repeated = {name: schema["default"] for name, schema in of_the_server().items()}
    assert repeated == {name: defaults[name] for name in repeated}


def test_limits_and_choices_are_those_of_the_server() -> None:
    schemas = LspSettings.model_json_schema(by_alias=True)["properties"]
    for name, offered in of_the_server().items():
        schema = schemas[name]
        served = next((s for s in schema.get("anyOf", ()) if s.get("type") != "null"), schema)
        for limit in ("minimum", "maximum", "enum"):
            assert offered.get(limit) == served.get(limit), f"{name}: {limit}"


def test_every_manifest_command_is_registered_once() -> None:
    from redraft.lsp.protocol import reports

    source = (CLIENT / "src" / "extension.ts").read_text(encoding="utf-8")
    table = source[source.index("const all:") : source.index("return Object.entries(all)")]
    registered = set(re.findall(r"^      (\w+):", table, re.MULTILINE))
    offered = {c["command"].removeprefix("redraft.") for c in MANIFEST["contributes"]["commands"]}
    assert offered == registered
    # The library registers those of the server too; two of one name would clash.
    served = {name.removeprefix("redraft.") for name in reports.COMMANDS}
    assert not offered & served
    bound = {binding["command"] for binding in MANIFEST["contributes"]["keybindings"]}
    of_vscode = {"editor.action.inlineSuggest.jump"}
    assert bound <= {f"redraft.{name}" for name in offered} | of_vscode


def test_tab_is_left_alone_where_it_has_other_work() -> None:
    tabs = {
        binding["command"]: binding["when"].split(" && ")
        for binding in MANIFEST["contributes"]["keybindings"]
        if binding["key"] == "tab"
    }
    assert set(tabs) == {"redraft.acceptSuggestion", "redraft.indentOrAccept"}
    for conditions in tabs.values():
        for other_work in (
            *("suggestWidgetVisible", "inSnippetMode", "editorHasSelection", "editorReadonly"),
            *("editorHasMultipleSelections", "editorTabMovesFocus"),
        ):
            assert f"!{other_work}" in conditions
    # VS Code takes ghost text without an indentation itself.
    assert "inlineSuggestionHasIndentation" in tabs["redraft.indentOrAccept"]
    assert "!inlineSuggestionVisible" in tabs["redraft.acceptSuggestion"]


def test_untrusted_folders_cannot_set_risky_settings() -> None:
    """Programs to run, secrets to read, texts to log."""
    restricted = MANIFEST["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    programs = {f"redraft.{name}" for name in PROPERTIES if name.startswith("server.")}
    assert set(restricted) == programs | {"redraft.secretGlobs", "redraft.trace.server"}


def test_the_native_package_enables_the_proposed_api() -> None:
    build = (CLIENT / "build.mjs").read_text(encoding="utf-8")
    code = (CLIENT / "src" / "next_edits.ts").read_text(encoding="utf-8")
    [proposal] = PROPOSALS  # of the package that is driven in the real editor
    assert f"enabledApiProposals = ['{proposal}']" in build
    assert f"PROPOSAL = '{proposal}'" in code
    assert "enabledApiProposals" not in MANIFEST  # no marketplace takes it


def test_the_server_is_not_installed_from_a_registry() -> None:
    assert PROPERTIES["server.package"]["default"] == ""
    ignored = (CLIENT / ".vscodeignore").read_text(encoding="utf-8").split()
    assert "!dist/server/*.whl" in ignored  # the server comes with the extension
    scripts = MANIFEST["scripts"]
    for script in ("vscode:prepublish", "package:native"):
        assert "--release --server" in scripts[script]
