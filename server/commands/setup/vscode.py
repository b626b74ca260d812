"""VS Code and its relatives: our extension, packed from the installed files."""

from __future__ import annotations

import io
import json
import zipfile
from functools import cache
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from .changes import Record, SetupPlan, record_folder, run
from .clients import client_file, find_program, licence

EXTENSION = "redraft.redraft"


def plan(command: str, title: str, _record: Record, program: str) -> SetupPlan:
    """Return the plan for the editor whose command line is ``command``."""
    manifest = _manifest()
    file = record_folder() / f"redraft-for-{command}-{manifest['version']}.vsix"
    files = {file: pack(program)}
    code = find_program(command)
    if not code:
        by_hand = (
            f"There is no command '{command}' on the PATH: in {title}, open the Extensions view, "
            f"choose 'Install from VSIX…' in its menu '…', and open {file}"
        )
        return SetupPlan(files=files, by_hand=by_hand)
    listed = run(code, "--list-extensions", "--show-versions").split()
    return SetupPlan(
        files=files,
        run=(code, "--install-extension", str(file), "--force"),
        has_run=f"{EXTENSION}@{manifest['version']}" in listed,
    )


def command_to_undo(command: str) -> tuple[str, ...]:
    """Return what uninstalls the extension, () if it is not installed."""
    code = find_program(command)
    is_installed = code and EXTENSION in run(code, "--list-extensions").split()
    return (code, "--uninstall-extension", EXTENSION) if is_installed else ()


def pack(program: str) -> bytes:
    """Return our extension as a .vsix whose server is the command ``program``.

    The same content gives the same bytes.
    """
    client, manifest = client_file("vscode"), _manifest()
    parts = {
        "[Content_Types].xml": _CONTENT_TYPES.encode(),
        "extension.vsixmanifest": _vsix_manifest(manifest).encode(),
        "extension/package.json": (client / "package.json").read_bytes(),
        "extension/dist/server-command": program.encode(),
        "extension/dist/extension.js": (client / "bundle" / "extension.js").read_bytes(),
        "extension/LICENSE.txt": licence().encode(),
    }
    for name in ("README.md", "media/icon.png", "media/next-edit.png"):
        parts[f"extension/{name}"] = (client / name).read_bytes()
    notices = client / "bundle" / "THIRD_PARTY_NOTICES.md"
    parts["extension/THIRD_PARTY_NOTICES.md"] = notices.read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


@cache
def _manifest() -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(client_file("vscode/package.json").read_text("utf-8"))
    return manifest


_CONTENT_TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension=".json" ContentType="application/json"/>
<Default Extension=".vsixmanifest" ContentType="text/xml"/>
</Types>
"""


def _vsix_manifest(manifest: dict[str, Any]) -> str:
    """Return the XML that describes the extension to its installer (PackageManifest 2.0.0)."""
    keys = {"Id": "name", "Version": "version", "Publisher": "publisher"}
    identity = " ".join(f"{name}={quoteattr(manifest[key])}" for name, key in keys.items())
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
<Metadata>
<Identity Language="en-US" {identity}/>
<DisplayName>{escape(manifest["displayName"])}</DisplayName>
<Description xml:space="preserve">{escape(manifest["description"])}</Description>
<Properties>
<Property Id="Microsoft.VisualStudio.Code.Engine" Value={quoteattr(manifest["engines"]["vscode"])}/>
</Properties>
</Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
<Dependencies/>
<Assets>
<Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json"/>
</Assets>
</PackageManifest>
"""
