"""Secrets by name and by text, and files that only look like secrets."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from redraft.lsp.context.index import Index
from redraft.lsp.context.indexer import fill
from redraft.lsp.editor_settings import LspSettings, update_settings
from redraft.lsp.policy.exclusions import refuse_file
from redraft.lsp.policy.secret_files import secret_in
from redraft.lsp.snapshot import RequestFlags
from redraft.lsp.workspace import Workspace
from redraft.model.gate.reasons import Abstain
from support.editors.workbench import URI, Ask, Workbench


def names(listed: str) -> list[str]:
    """Paths, with white space between them."""
    return listed.split()


SECRET = names("""
.env .env.local .env.example .env~ .env-prod .env_staging .env.bak prod.env .envrc .envrc.old
.netrc _netrc .netrc.bak .authinfo .authinfo.gpg .npmrc .pypirc .pgpass pgpass.conf .my.cnf
.mylogin.cnf .git-credentials .git-credentials~ .git/config sub/.git/config
.git/modules/lib/config .htpasswd htpasswd .vault-token .vault_pass .vault_pass.txt .s3cfg .boto
.dockercfg .docker/config.json home/.docker/config.json .dockerconfigjson .msmtprc rclone.conf
.databrickscfg kubeconfig kubeconfig.yaml kubeconfig-prod staging.kubeconfig .kube/config
.kube/config.bak .aws/credentials .aws/config .azure/accessTokens.json .ssh/config .ssh/deploy
.gnupg/private.d .config/gh/hosts.yml gh/hosts.yml .terraformrc credentials.tfrc.json
terraform.tfvars prod.auto.tfvars prod.tfvars.json terraform.tfstate terraform.tfstate.backup
terraform.tfstate.1690 service-account.json service-account-prod.json my-service-account.json
service_account.json serviceaccount.json gcp-credentials.json application_default_credentials.json
client_secret_123.json app-firebase-adminsdk-x.json local.settings.json auth.json credentials
credentials.yml credentials.yaml credentials.json credentials.toml credentials.csv
credentials.yml.enc credentials.json.bak config/credentials.yml secrets.yml secrets.yaml
secrets.json secrets.toml secret.yml secret.yaml secret.json secret.toml db-secret.yaml
db-secrets.yml app_secrets.json prod.secrets.toml secret-db.yaml secrets-prod.yml secrets.py
.secret .secrets secret.txt server.pem server.PEM tls.key AuthKey_1.p8 cert.p12 cert.pfx putty.ppk
store.jks store.bks app.keystore user.keytab login.keychain-db vault.kdbx mail.gpg key.asc
client.ovpn wg0.conf id_rsa id_rsa.old id_dsa id_ecdsa id_ed25519 id_ed25519.pub ssh_host_rsa_key
.bash_history .zsh_history .python_history .psql_history .mysql_history .sqlite_history
.node_repl_history .irb-history .rediscli_history fish_history ConsoleHost_history.txt .histfile
.lesshst .viminfo poetry.lock package-lock.json
""")

LOOKALIKE = names("""
environment.py env.py envrc.py dotenv.ts .envoy.yaml environments/prod.py secrets_manager.py
secret_santa.py secretary.py secretary.json secret.py test_secrets.py test_credentials.py
credentials.py credentials.ts credentials_store.go my_credentials.rs keys.py monkey.py
keyboard.json keymap.json keystore.ts public_key.py api_keys.md history.py edit_history.py
history.json git_history.ts bash_history.md kubeconfig.go kube/config.go config.json
docker/config.json config .github/config.yml .git/COMMIT_EDITMSG gitconfig.py .gitignore
.gitattributes terraform.py main.tf variables.tf tfstate.go tfvars.md netrc.py npmrc.ts pgpass.c
htpasswd.go .htaccess authinfo.el vault.py vault_token.rs service_account.py service.json ovpn.py
ppk.rs p8.c pem.go tokens.py tokenizer.json password_reset.html passwords.py package.json
settings.json lockfile.ts hosts.yml docs/gh.md known_hosts_parser.py idrsa.py services.json
""")

KEY = "".join(f"MIIEpAIBAAKCAQEA{line:048x}\n" for line in range(4))
BLOCK = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}-----END RSA PRIVATE KEY-----\n"
TOKEN = "ghp_" + "aB3" * 12


@pytest.mark.parametrize("path", SECRET)
def test_names_of_secrets_are_refused(path: str) -> None:
    assert "secretGlobs" in refuse_file(path, LspSettings())
    assert "secretGlobs" in refuse_file(f"deep/down/{path}", LspSettings())


@pytest.mark.parametrize("path", LOOKALIKE)
def test_names_that_look_alike_are_not(path: str) -> None:
    assert refuse_file(path, LspSettings()) == ""
    assert refuse_file(f"deep/down/{path}", LspSettings()) == ""
    assert refuse_file(path, LspSettings(), f"file:///home/me/project/{path}") == ""


@pytest.mark.parametrize(
    ("uri", "secret"),
    [
        ("file:///home/me/.kube/config", True),
        ("file:///C%3A/Users/me/.kube/config", True),
        ("file:///home/me/.config/gh/hosts.yml", True),
        ("file:///home/me/project/.git/config", True),
        ("file:///home/me/.ssh/deploy", True),
        ("file:///home/me/.ssh/project/main.py", False),  # all of a project may lie anywhere
        ("file:///home/me/app/config", False),
        ("untitled:config", False),
    ],
)
def test_a_file_of_no_folder_is_known_by_its_path(uri: str, secret: bool) -> None:
    shown = uri.rsplit("/", 1)[-1]
    assert bool(refuse_file(shown, LspSettings(), uri)) == secret
    decision = Workbench().consider(path=shown, uri=uri)
    assert ("secretGlobs" in getattr(decision, "reason", "")) == secret


def test_own_patterns_are_added_to_the_defaults() -> None:
    settings = LspSettings(secret_globs=("private/*", "*.Vault", "[ab]?c", "plain"))
    for path in ("private/x.py", "deep/private/x.py", "a/b.vault", "axc", "plain"):
        assert refuse_file(path, settings)
    for path in (".env", "deep/id_rsa", "server.pem"):
        assert refuse_file(path, settings)
    for path in ("x.py", "cxc", "plainer"):
        assert not refuse_file(path, settings)
    assert refuse_file("x.py", settings, "file:///w/private/x.py")
    assert not refuse_file("x.py", settings, "file:///private/w/x.py")
    assert refuse_file(".env", LspSettings(secret_globs=()))
    assert not refuse_file("x.py", LspSettings(secret_globs=()))


def test_a_later_list_of_patterns_replaces_the_earlier() -> None:
    settings, _ = update_settings(LspSettings(), {"secretGlobs": ["a.py"]})
    settings, _ = update_settings(settings, {"secretGlobs": ["b.py"]})
    assert refuse_file("b.py", settings)
    assert refuse_file(".env", settings)
    assert not refuse_file("a.py", settings)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("deploy", BLOCK),
        ("deploy.py", BLOCK),  # whatever it is called
        ("deploy.txt", f"\ufeff\n# the key of the build\n{BLOCK}"),
        ("bag", f"Bag Attributes\n    localKeyID: 01\nKey Attributes: <None>\n{BLOCK}"),
        ("key.txt", BLOCK.replace("RSA ", "")),
        ("key.txt", BLOCK.replace("RSA", "OPENSSH")),
        ("key.txt", BLOCK.replace("RSA", "ENCRYPTED")),
        ("pgp.txt", BLOCK.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK")),
        ("putty.txt", "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n"),
        ("age.txt", f"# created: today\nAGE-SECRET-KEY-1{'Q' * 58}\n"),
        ("chain.txt", f"-----BEGIN CERTIFICATE-----\n{KEY}-----END CERTIFICATE-----\n{BLOCK}"),
        ("values.yaml", "tls:\n  key: |\n" + "".join(f"    {x}\n" for x in BLOCK.split("\n"))),
        ("account.json", '{"private_key": "' + BLOCK.replace("\n", "\\n") + '"}'),
        ("app.properties", f"key={BLOCK}"),
        ("notes.md", f"Use this:\n\n{BLOCK}"),
        ("cluster.yaml", f"users:\n- client-key-data: {encoded(BLOCK)}\n"),
        ("cluster.yaml", f"client-key-data: {encoded(BLOCK.replace('RSA ', ''))}\n"),
        ("cluster.yaml", f"client-key-data: {encoded(BLOCK.replace('RSA', 'EC'))}\n"),
        ("cluster.yaml", f"client-key-data: {encoded(BLOCK.replace('RSA', 'OPENSSH'))}\n"),
        ("cluster.yaml", f"client-key-data: {encoded(BLOCK.replace('RSA', 'ENCRYPTED'))}\n"),
        ("token", TOKEN),
        ("token.txt", f"# github\n{TOKEN}\n"),
        ("vars.sh", f"export GITHUB_TOKEN={TOKEN}\nexport AWS_KEY='AKIAIOSFODNN7EXAMPLE'\n"),
        ("ci.ini", f"slack = xoxb-{'1' * 12}-{'a' * 24}\n"),
        ("jwt", f"eyJ{'a' * 20}.eyJ{'b' * 40}.{'c' * 43}"),
        ("x", f"sk-{'a' * 48}"),
        ("x", f"npm_{'a' * 36}"),
        ("x", f"glpat-{'a' * 20}"),
        ("x", f"AIza{'a' * 35}"),
    ],
)
def test_secret_texts_are_known_whatever_their_name(path: str, text: str) -> None:
    assert secret_in(text, path)


TEST_OF_KEYS = f'''
import load


def test_a_key_is_loaded():
    assert load.parse("""
{BLOCK}""")
'''


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("parse.py", 'HEADER = "-----BEGIN RSA PRIVATE KEY-----"\n'),
        ("test_keys.py", TEST_OF_KEYS),
        ("key.go", f"package key\n\nconst pem = `{BLOCK}`\n"),
        ("docs.md", "A key begins with `-----BEGIN RSA PRIVATE KEY-----` and ends so.\n"),
        ("docs.md", "So:\n-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----\n"),
        ("cert.txt", f"-----BEGIN CERTIFICATE-----\n{KEY}-----END CERTIFICATE-----\n"),
        ("public.txt", BLOCK.replace("RSA PRIVATE", "PUBLIC")),
        ("tokens.py", f'PATTERN = re.compile(r"ghp_[A-Za-z0-9]{{36}}")\nX = "{TOKEN}"\n'),
        ("config.yaml", f"title: a long page about many other things\nexample: {TOKEN}\n"),
        (
            "cluster.yaml",
            f"certificate-authority-data: {encoded('-----BEGIN CERTIFICATE-----' * 3)}",
        ),
        ("a.py", ""),
        ("a.txt", "\n\n"),
        ("a.py", "x = 1\n"),
    ],
)
def test_texts_that_only_speak_of_secrets_stay_of_use(path: str, text: str) -> None:
    assert secret_in(text, path) == ""


def test_no_text_takes_long_to_judge() -> None:
    """Ends at all: patterns that try again from everywhere would take hours here."""
    units = ["-----BEGIN A B C PRIVATE KEY-----\\n", " \n", "\t# \n", "a=", "eyJaaaaaaaaaa."]
    for unit in (*units, "LS0tLS1CRUdJTi", "SG.aaaaaaaaaaaaaaaaaaaaa"):
        secret_in(unit * (200_000 // len(unit)), "a.txt")
        secret_in(unit * (4_000 // len(unit)), "a.txt")


def ways_in(tmp_path: Path) -> dict[str, Callable[[str, str], bool]]:
    """Return where a document of this path and text gets: model, index, recording."""

    def asked(path: str, text: str) -> bool:
        desk = Workbench()
        document = desk.open(text, path)
        here = {"path": path, "uri": document.uri, "revision": document.revision}
        return isinstance(desk.consider(text=text, cursor=0, **here), Ask)

    def indexed(path: str, text: str) -> bool:
        file = tmp_path / "w" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        index, settings = Index(), LspSettings()
        fill(index, [tmp_path / "w"], lambda name: refuse_file(name, settings), lambda *_: None)
        return path in {entry.path for entry in index.generation.entries}

    def beside(path: str, text: str) -> bool:
        workspace = Workspace(LspSettings(), lambda: 0.0, reads=False)
        workspace.folders = ["file:///w"]
        uri = workspace.open(f"file:///w/{path}", text, 0, "").uri
        return bool(workspace.snapshot(uri, 0, RequestFlags()).opened.editable)

    def recorded(path: str, text: str) -> bool:
        scene = Workbench(None, tmp_path / path.replace("/", "_"))
        scene.open(text, path)
        return any(path in file.read_text() for file in scene.files())

    def remembered(path: str, text: str) -> bool:
        desk = Workbench()
        document = desk.open(text, path)
        desk.becomes_elsewhere(document, text + "changed = 1\n")
        desk.clock.now += 5
        desk.session.workspace.history.flush(document.uri)
        return bool(desk.session.workspace.history.view().finished)

    return dict(zip(WAYS, (asked, indexed, beside, recorded, remembered), strict=True))


WAYS = ("asked", "indexed", "beside", "recorded", "remembered")
PLAIN = "def helper(value):\n    return value + 1\n"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("spawn")
def test_secrets_reach_no_model_index_or_recording(way: str, tmp_path: Path) -> None:
    gets_in = ways_in(tmp_path)[way]
    assert gets_in("plain.py", PLAIN)  # else this would prove nothing
    assert not gets_in("secrets.py", PLAIN)
    assert not gets_in(".ssh/tool.py", PLAIN)
    assert not gets_in("deploy.py", BLOCK)


def test_edits_of_what_becomes_secret_disappear() -> None:
    desk = Workbench()
    document = desk.open(PLAIN, "notes.py")
    desk.becomes_elsewhere(document, PLAIN.replace("+ 1", "+ 22"))
    desk.session.workspace.history.flush(document.uri)
    assert desk.session.workspace.history.view().finished
    desk.session.workspace.settings = LspSettings(secret_globs=("notes.*",))
    assert not desk.session.workspace.history.view().finished


def test_the_reason_is_said_without_the_secret() -> None:
    decision = Workbench(BLOCK).consider(text=BLOCK, cursor=0)
    assert isinstance(decision, Abstain)
    assert decision.reason == "this file begins with a private key"
    assert URI not in decision.reason
