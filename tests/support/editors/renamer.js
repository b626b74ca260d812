// Extension of the tests: a rename provider for the file provided.py. Like a language server it finds
// only what has the name at the cursor, here in comments as well.
const vscode = require('vscode');

exports.activate = () =>
  vscode.languages.registerRenameProvider({ pattern: '**/provided.py' }, {
    provideRenameEdits(document, position, name) {
      const word = document.getText(document.getWordRangeAtPosition(position));
      const edit = new vscode.WorkspaceEdit();
      for (const found of document.getText().matchAll(new RegExp(`\\b${word}\\b`, 'g'))) {
        const [start, end] = [found.index, found.index + word.length];
        const where = new vscode.Range(document.positionAt(start), document.positionAt(end));
        edit.replace(document.uri, where, name);
      }
      return edit;
    },
  });
