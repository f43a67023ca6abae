"""Reading pages of HTML back."""

from xml.etree import ElementTree


def parse(html):
    return ElementTree.fromstring(f"<div>{html}</div>")


def text_of(element):
    """The text without the numbers of clusters."""
    parts = [element.text or ""] if element.tag != "sup" else []
    for child in element:
        parts += [text_of(child), child.tail or ""]
    return "".join(parts)


def mentions(root):
    """The texts of the mentions of each cluster; parts of one that is cut are joined."""
    found = {}
    for element in root.iter("span"):
        number = int(element.get("data-cluster"))
        found[number] = found.get(number, "") + text_of(element)
    return found
