"""Settings of the language server: defaults, units and reasons.

Editors send these as ``initializationOptions`` or in ``workspace/didChangeConfiguration``, in
camelCase or snake_case, at the top or under the key ``redraft``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
)
from pydantic.alias_generators import to_camel
from redraft.model.gate.eagerness import Eagerness, least_total, threshold
from redraft.model.records import MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS, Quality, Task

#: Endings of settings that are secret by the name before them, and code is not.
_DATA = ("json", "yml", "yaml", "toml")

#: Files whose text must never reach a model, whatever the user set elsewhere, and lock files, where
#: a suggestion is never wanted. Matched in lower case against the name, also without what marks a
#: backup ("~", ".bak"), and against the path; one with folders in it, against the end of the whole
#: path on the disk as well. Templates such as .env.example are among them: real values end up in
#: them.
SECRET_GLOBS = (
    *(".env", ".env.*", ".env-*", ".env_*", "*.env", ".envrc"),
    # keys and what holds them
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.jceks", "*.bks"),
    *("*.keystore", "*.keytab", "*.keychain", "*.keychain-db", "*.kdb", "*.kdbx", "*.agekey"),
    *("*.gpg", "*.pgp", "*.asc", "*.ovpn", "wg[0-9].conf"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "ssh_host_*_key"),
    *(".ssh/*", ".gnupg/*", ".aws/*", ".azure/*"),
    # logins of programs
    *(".netrc", "_netrc", ".authinfo", ".npmrc", ".pypirc", ".pgpass", "pgpass.conf", ".my.cnf"),
    *(".mylogin.cnf", ".git-credentials", ".git/config", ".git/modules/*/config", "gh/hosts.yml"),
    *(".htpasswd", "htpasswd", ".vault-token", ".vault_pass*", ".vault-pass*", ".s3cfg", ".boto"),
    *(".dockercfg", ".dockerconfigjson", ".docker/config.json", ".msmtprc", ".fetchmailrc"),
    *("kubeconfig", "kubeconfig.conf", "kubeconfig-*", "*.kubeconfig", ".kube/config*"),
    *("rclone.conf", ".databrickscfg", ".passwd-s3fs", ".terraformrc", "*.tfrc.json"),
    *("*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.*", "*.publishsettings"),
    *("local.settings.json", "auth.json", "service-account*.json", "service_account*.json"),
    *("serviceaccount*.json", "*[-_.]service-account.json", "*[-_.]service_account.json"),
    *("client_secret*.json", "*firebase-adminsdk*.json"),
    *("credentials", "credentials.csv", "credentials.ini", "credentials.properties"),
    *("credentials.txt", "credentials.xml", "credentials.yml.enc"),
    *(f"{stem}.{ending}" for stem in ("credentials", "*[-_.]credentials") for ending in _DATA),
    *(".secret", ".secrets", "secrets.*", "secret.txt", "secret.ini", "secret.properties"),
    *(f"{stem}.{ending}" for stem in ("secret", "kubeconfig") for ending in _DATA),
    *(f"{stem}.{ending}" for stem in ("*[-_.]secret", "*[-_.]secrets") for ending in _DATA),
    *(f"{stem}.{ending}" for stem in ("secret[-_.]*", "secrets[-_.]*") for ending in _DATA),
    # what was typed into shells and consoles
    *(".*_history", ".*-history", "fish_history", "consolehost_history.txt", ".history"),
    *(".histfile", ".zhistory", ".lesshst", ".viminfo"),
    # locked versions
    *("*.lock", "*-lock.json", "*-lock.yaml", "go.sum"),
)


#: "full"; "calm": only by a gesture or when the keys rest, and nothing is computed ahead; "off".
Effort = Literal["full", "calm", "off"]

_SCOPE = r"^([^:\s]+:)?(comments|strings)$"


class LspSettings(BaseModel):
    """Settings of the language server."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )

    enabled: bool = True
    #: LSP language ids without suggestions, such as "markdown".
    disabled_languages: tuple[str, ...] = ()
    #: Parts of a text without suggestions unless a gesture asks: "comments", "strings", or one of
    #: them in one language, as in "python:comments".
    disabled_scopes: tuple[Annotated[str, StringConstraints(pattern=_SCOPE)], ...] = ()
    #: What is done on battery, and while other programs use most of the processors, where the model
    #: runs on this machine; see :mod:`redraft.lsp.policy.machine_load`.
    on_battery: Effort = "full"
    under_load: Effort = "full"
    #: ms between the last keystroke and the question to the model, before it adapts to what the
    #: user accepts. 100 ms is below what people notice and above the gap inside a burst of keys.
    delay_ms: float = Field(default=100.0, ge=0, le=10_000)
    #: How readily suggestions are shown; see model/gate/gate.py.
    eagerness: Eagerness = "medium"
    #: The same for single languages, by LSP language id: {"markdown": "low"}.
    eagerness_by_language: dict[str, Eagerness] = Field(default_factory=dict)
    #: Learn from recorded outcomes which suggestions to show, on this machine and for it alone;
    #: nothing is learned while nothing is recorded.
    learn_gate: bool = True
    #: While recording, show at one moment in a hundred what is a little too unsure, and hide at
    #: another what is just sure enough, so that the gate learns of that too.
    explore_gate: bool = False
    #: Count suggestions and what becomes of them, for ``redraft stats``; no text is stored.
    statistics: bool = True
    #: Predict the next edit, for clients that ask for it. Ghost text does not depend on it.
    next_edits: bool = True
    #: Offer the rename of a definition at all of its uses, in every file, as one next edit.
    whole_renames: bool = True
    #: While a next edit is shown, compute the one that would follow it: Tab, Tab, Tab. Read prompts
    #: before they are asked about.
    prefetch: bool = True
    #: Offer suggestions as entries of the completion menu too, for editors without ghost text.
    #: Read when the client connects.
    completion_items: bool = False
    #: Lines of a suggestion where nothing follows the cursor on its line; there it is 1. Long ones
    #: are read slowly and accepted rarely.
    max_lines: int = Field(default=6, ge=1, le=200)
    #: Tokens of a suggestion at most; about 6 lines of code.
    max_tokens: int = Field(default=64, ge=1, le=1024)
    #: Tokens of context; None: what this machine prefills in time.
    context_tokens: int | None = Field(default=None, ge=MIN_CONTEXT_TOKENS, le=MAX_CONTEXT_TOKENS)
    #: Files that are in front of every prompt: paths below a workspace folder, or globs of such.
    pinned_files: tuple[str, ...] = ()
    #: Tokens of all pinned files together. The prompt gives them a third of its context at most.
    pinned_tokens: int = Field(default=1_024, ge=64, le=16_384)
    #: Denoising effort: speed against care.
    quality: Quality = "medium"
    #: Files never read by the model, besides those that hold a private key or consist of access
    #: tokens (:mod:`redraft.lsp.policy.secret_files`), and those of :data:`SECRET_GLOBS`;
    #: "!*.pem" takes "*.pem" out of these.
    secret_globs: tuple[str, ...] = ()
    #: Characters of the largest file that gets suggestions: each costs a copy and a hash of it.
    max_file_chars: int = Field(default=2_000_000, ge=1)
    #: A line longer than this, or an average above a tenth of it, is taken for minified.
    max_line_chars: int = Field(default=5_000, ge=80)
    #: ms after which an answer comes too late to be of use and its computation is stopped.
    timeout_ms: float = Field(default=10_000.0, ge=100, le=600_000)

    @field_validator("secret_globs")
    @classmethod
    def _takes_out_what_there_is(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        known = {glob.lower() for glob in (*SECRET_GLOBS, *given)}
        for glob in given:
            if glob.startswith("!") and glob[1:].lower() not in known:
                raise ValueError(f"{glob} takes nothing out, because no pattern is {glob[1:]}")
        return given

    @property
    def secrets(self) -> tuple[str, ...]:
        """The patterns of secret files: the defaults and the user's, without those taken out."""
        return effective_globs(self.secret_globs)

    def eagerness_in(self, language: str) -> Eagerness:
        """Return how readily suggestions are shown in files of a language."""
        return self.eagerness_by_language.get(language, self.eagerness)

    def threshold_in(self, language: str, task: Task) -> float:
        """Return the score from which a suggestion is shown, 0 … 1."""
        return threshold(self.eagerness_in(language), task)

    def least_total_in(self, language: str) -> float:
        """Return the log-probability below which ghost text without a gesture is given up."""
        return least_total(self.threshold_in(language, "infill"))

    def scopes_off(self, language: str) -> frozenset[str]:
        """Return which of "comments" and "strings" get no suggestions in a language."""
        parted = (each.rpartition(":") for each in self.disabled_scopes)
        return frozenset(scope for where, _, scope in parted if where in ("", language))


@lru_cache(maxsize=4)
def effective_globs(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the patterns of secret files by what the user has set.

    One entry of the user must not open every other secret, so the defaults stay.
    """
    taken = {glob[1:].lower() for glob in given if glob.startswith("!")}
    added = (glob for glob in given if not glob.startswith("!"))
    return tuple(
        glob for glob in dict.fromkeys((*SECRET_GLOBS, *added)) if glob.lower() not in taken
    )


def update_settings(settings: LspSettings, sent: Any) -> tuple[LspSettings, tuple[str, ...]]:
    """Return ``settings`` with what a client sent, and a sentence on each value that is of no use.

    A bad value leaves its setting as it was; unknown names are reported and have no effect.
    """
    if sent is None:
        return settings, ()
    if isinstance(sent, dict) and isinstance(sent.get("redraft"), dict):
        sent = sent["redraft"]
    if not isinstance(sent, dict):
        kind = type(sent).__name__
        return settings, (f"settings must be an object of names and values, got {kind}: ignored",)
    names = {alias: name for name in LspSettings.model_fields for alias in (name, to_camel(name))}
    problems = [
        f"unknown setting {name!r}: ignored. Known are {', '.join(LspSettings.model_fields)}"
        for name in sent
        if name not in names
    ]
    for name, value in sent.items():
        if name not in names:
            continue
        field = names[name]
        try:
            settings = LspSettings.model_validate({**settings.model_dump(), field: value})
        except ValidationError as error:
            why = error.errors()[0]["msg"]
            kept = getattr(settings, field)
            problems.append(f"setting {field} cannot be {value!r} ({why}); it stays {kept!r}")
    return settings, tuple(problems)
