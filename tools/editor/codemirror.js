// What the console's editor takes from CodeMirror. The README beside this file says how the bundle is made.
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { SQLDialect, sql } from "@codemirror/lang-sql";
export { bracketMatching, syntaxHighlighting } from "@codemirror/language";
export { EditorState, Prec } from "@codemirror/state";
export { EditorView, keymap, placeholder } from "@codemirror/view";
export { classHighlighter } from "@lezer/highlight";
export { StyleModule } from "style-mod";

export const bundle = { version: "6.43.15" }; // of @codemirror/view; package-lock.json has those of the others
