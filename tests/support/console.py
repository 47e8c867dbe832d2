"""The console as a browser without scripts has it: pages as tags and words, and someone who visits them."""

from __future__ import annotations

from html.parser import HTMLParser

EMPTY = {"input", "meta", "link", "img", "br"}


class Page(HTMLParser):
    """The tags of a page with their attributes, its words, and its forms with their fields."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.forms, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = {name: value or "" for name, value in attrs}
        self.tags.append((tag, found))
        if tag not in EMPTY:
            self.open.append(tag)
        if tag == "form":
            self.forms.append((found, []))
        if tag in {"input", "select", "textarea", "button"} and self.forms:
            self.forms[-1][1].append(found)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def all(self, tag, **wanted):
        return [found for name, found in self.tags if name == tag and wanted.items() <= found.items()]

    def of_class(self, name):
        return [found for _, found in self.tags if name in found.get("class", "").split()]


class Visitor:
    """Someone with a browser that has no scripts."""

    def __init__(self, client):
        self.client = client
        self.token = ""

    def get(self, path, **headers):
        return self.client.get(f"/console{path}", headers=headers)

    def post(self, path, headers=None, **fields):
        return self.client.post(f"/console{path}", data={"csrf": self.token, **fields}, headers=headers)

    def ask(self, sql, epsilon="0.5", path="/ask", **more):
        return self.post(path, sql=sql, epsilon=epsilon, confidence="0.95", **more)

    def sign_in(self, name, password):
        (form,) = Page(self.get("/sign-in").text).forms
        self.token = next(field["value"] for field in form[1] if field.get("name") == "csrf")
        response = self.post("/sign-in", name=name, password=password)
        if response.status_code == 303:
            page = Page(self.get("/learn").text)
            self.token = page.all("input", name="csrf")[0]["value"]
        return response
