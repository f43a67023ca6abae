"""Reading pages of HTML back."""

from xml.etree import ElementTree


def parse(html):
    return ElementTree.fromstring(f"<div>{html}</div>")


def text_of(element):
    """The text without the names of speakers."""
    parts = [element.text or ""] if element.get("class") != "speaker" else []
    for child in element:
        parts += [text_of(child), child.tail or ""]
    return "".join(parts)


def mentions(root):
    """The texts of the mentions of each cluster; parts of one that is cut are joined."""
    found = {}
    for element in root.iter("span"):
        if element.get("data-cluster") is None:
            continue
        number = int(element.get("data-cluster"))
        found[number] = found.get(number, "") + text_of(element)
    return found
