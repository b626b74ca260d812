#!/usr/bin/env bash
# Installs what the end-to-end suite drives: VS Code in the browser (code-server) and playwright-core,
# from the npm registry alone, without the downloads of their post-install scripts.
#
#   e2e/install.sh DIR        then: REDRAFT_VSCODE_DIR=DIR pytest tests/editors/vscode
#
# Needs Node 20 with npm, a C++ compiler with make and python3 (three native modules are built), and a
# Chromium: Debian's package `chromium`, or any that CHROMIUM names. Takes minutes and about 250 MB.
set -euo pipefail
dir=${1:?usage: install.sh DIR}
mkdir -p "$dir"
cd "$dir"
[ -f package.json ] || echo '{"private": true}' > package.json
quiet=(--no-audit --no-fund --loglevel=error)

npm install "${quiet[@]}" --ignore-scripts code-server@4.100.3 playwright-core@1.55.0
vscode=node_modules/code-server/lib/vscode
(cd "$vscode" && npm install "${quiet[@]}" --ignore-scripts --omit=dev)
# Of what comes with VS Code only Python's grammar, notebooks and the themes: the rest costs each window seconds.
find "$vscode/extensions" -mindepth 1 -maxdepth 1 ! -name python ! -name ipynb ! -name 'theme-*' -exec rm -rf {} +
ln -sfn node_modules "$vscode/node_modules.asar"
# node-pty stays unbuilt: only terminals need it.
(cd "$vscode" && npm rebuild "${quiet[@]}" @vscode/spdlog native-watchdog)
npm rebuild "${quiet[@]}" argon2
touch complete
