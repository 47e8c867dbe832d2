// The question's editor: colors, and completion of the tables and columns on this page and of the functions that are
// answered. The text area stays in the form, and is what is sent; without scripts it is what is typed into.
const search = new URL(import.meta.url).search; // the version, so that a new one is not mixed with an old one
const {
  EditorState, EditorView, Prec, SQLDialect, StyleModule, autocompletion, bracketMatching, classHighlighter,
  closeBrackets, closeBracketsKeymap, completionKeymap, defaultKeymap, history, historyKeymap, keymap, placeholder, sql,
  syntaxHighlighting,
} = await import("./codemirror.min.js" + search);

const KEYWORDS =
  "all and any as asc between by case cross cube current_date desc distinct else end escape except exists false filter " +
  "first from full group grouping having in inner intersect interval into is join lateral left like ilike limit " +
  "natural not null nulls offset on or order outer over partition qualify range recursive right rollup row rows select " +
  "sets similar some then true union unknown using values when where window with within";
const TYPES = "bigint boolean date decimal double float integer int numeric real smallint text timestamp varchar";
const COMMON = new Set(["avg", "count", "max", "median", "min", "sum"]);

// Style sheets made by a script are within the page's content security policy, style elements are not. CodeMirror has
// style sheets in shadow roots only, so its set for such a root is made the document's.
const root = { ownerDocument: document, adoptedStyleSheets: [] };
StyleModule.mount(root, []);
document[Object.getOwnPropertySymbols(root)[0]] = root[Object.getOwnPropertySymbols(root)[0]];

const area = document.getElementById("sql");
const label = document.getElementById("sql-label");

const functions = area.dataset.functions.split(" ").map((name) => ({
  label: name.toUpperCase(),
  type: "function",
  boost: COMMON.has(name) ? 1 : -1,
  apply: (view, completion, from, to) => {
    const text = completion.label + "()";
    view.dispatch({ changes: { from, to, insert: text }, selection: { anchor: from + text.length - 1 } });
  },
}));

function completeFunctions(context) {
  const word = context.matchBefore(/[A-Za-z_]\w*$/);
  const before = word && context.state.sliceDoc(Math.max(0, word.from - 1), word.from);
  return !word || before === "." || before === '"' ? null : { from: word.from, options: functions, validFor: /^\w*$/ };
}

function readSchema() {
  const tables = [...document.querySelectorAll("details.table")];
  return Object.fromEntries(tables.map((table) => [
    table.querySelector("[data-table]").dataset.table,
    [...table.querySelectorAll("[data-column]")].map((column) => column.dataset.column),
  ]));
}

// Columns of all tables, wherever a name may stand.
function completeColumns(schema) {
  const names = [...new Set(Object.values(schema).flat())];
  const options = names.map((name) => ({ label: name, type: "property", boost: 2, apply: quote(name) }));
  return (context) => {
    const word = context.matchBefore(/[A-Za-z_]\w*$/);
    const before = word && context.state.sliceDoc(Math.max(0, word.from - 1), word.from);
    return !word || before === "." || before === '"' ? null : { from: word.from, options, validFor: /^\w*$/ };
  };
}

function quote(name) {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : '"' + name.replaceAll('"', '""') + '"';
}

const dialect = SQLDialect.define({ keywords: KEYWORDS, types: TYPES, identifierQuotes: '"' });
const schema = readSchema();
const language = sql({ dialect, schema, upperCaseKeywords: true });

const view = new EditorView({
  doc: area.value,
  extensions: [
    Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => true }])), // the page asks
    history(),
    closeBrackets(),
    bracketMatching(),
    autocompletion({ icons: false }),
    keymap.of([...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
    language,
    language.language.data.of({ autocomplete: completeFunctions }),
    language.language.data.of({ autocomplete: completeColumns(schema) }),
    syntaxHighlighting(classHighlighter),
    placeholder(area.placeholder),
    EditorState.tabSize.of(4),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ id: "sql", "aria-labelledby": label.id, "aria-required": "true" }),
    EditorView.updateListener.of((update) => {
      if (!update.docChanged) return;
      area.value = update.state.doc.toString();
      area.dispatchEvent(new Event("input", { bubbles: true }));
    }),
  ],
});

const focused = document.activeElement === area;
area.id = "sql-text";
area.hidden = true;
area.required = false; // what is hidden cannot be asked for; the server says that a question is missing
label.removeAttribute("for");
label.addEventListener("click", () => view.focus());
area.after(view.dom);
if (focused) view.focus();

// A name of the schema goes to the cursor when it is clicked.
for (const name of document.querySelectorAll("aside [data-column]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "insert";
  button.title = "Insert into the question";
  name.replaceWith(button);
  button.append(name);
  button.addEventListener("click", () => {
    view.dispatch(view.state.replaceSelection(quote(name.dataset.column)), { userEvent: "input" });
    view.focus();
  });
}
