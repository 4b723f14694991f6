"""A reading of Swift source that is just deep enough for the checks: comments, strings, declarations, braces."""

import re

MODIFIERS = (
    r"(?:(?:static|class|final|override|mutating|nonmutating|nonisolated(?:\(\w+\))?|isolated|lazy|weak|unowned"
    r"|indirect|convenience|required|borrowing|consuming|distributed|dynamic|private|fileprivate|internal|package"
    r"|public|open|async|@\w+(?:\([^)]*\))?)\s+)*")
FUNCTION = re.compile(r"^[ \t]*" + MODIFIERS + r"(func\b[^\n({<]*|init\b|deinit\b|subscript\b)", re.MULTILINE)
NEXT_DECLARATION = re.compile(
    r"\n[ \t]*(?:@\w+[^\n]*\n[ \t]*)*" + MODIFIERS
    + r"(?:func|init|deinit|subscript|var|let|case|struct|enum|class|actor|protocol|extension|associatedtype)\b")


def blank(source):
    """The source with comments and the contents of string literals replaced by spaces; lines and columns stay."""
    result, index, length = list(source), 0, len(source)

    def erase(start, end):
        for position in range(start, min(end, length)):
            if result[position] != "\n":
                result[position] = " "

    while index < length:
        if source.startswith("//", index):
            end = source.find("\n", index)
            end = length if end < 0 else end
            erase(index, end)
        elif source.startswith("/*", index):
            end = end_of_block_comment(source, index)
            erase(index, end)
        elif string := re.compile(r'(#*)("""|")').match(source, index):
            end = end_of_string(source, string)
            erase(string.end(), end - len(string.group(2)) - len(string.group(1)))
        else:
            end = index + 1
        index = end
    return "".join(result)


def end_of_block_comment(source, start):
    depth, index = 0, start
    while index < len(source):
        if source.startswith("/*", index):
            depth, index = depth + 1, index + 2
        elif source.startswith("*/", index):
            depth, index = depth - 1, index + 2
            if depth == 0:
                return index
        else:
            index += 1
    return len(source)


def end_of_string(source, opening):
    """The index after the closing quotes; interpolations are skipped with the parentheses they hold."""
    hashes, quotes = opening.group(1), opening.group(2)
    escape, closing, index = "\\" + hashes, quotes + hashes, opening.end()
    while index < len(source):
        if source.startswith(escape + "(", index):
            index = end_of_interpolation(source, index + len(escape))
        elif source.startswith(escape, index):
            index += len(escape) + 1
        elif source.startswith(closing, index):
            return index + len(closing)
        elif quotes == '"' and source[index] == "\n":
            return index
        else:
            index += 1
    return len(source)


def end_of_interpolation(source, start):
    depth, index = 0, start
    while index < len(source):
        if string := re.compile(r'(#*)("""|")').match(source, index):
            index = end_of_string(source, string)
            continue
        depth += {"(": 1, ")": -1}.get(source[index], 0)
        index += 1
        if depth == 0:
            return index
    return len(source)


def line_of(source, index):
    return source.count("\n", 0, index) + 1


def functions(code):
    """Pairs of name and (first line, last line) for each function with a body; `code` has been through `blank`."""
    for match in FUNCTION.finditer(code):
        opening = body_of(code, match.end())
        if opening is None:
            continue
        start = match.start() + len(match.group(0)) - len(match.group(0).lstrip())
        yield match.group(1).strip(), (line_of(code, start), line_of(code, matching_brace(code, opening)))


def body_of(code, start):
    """The index of the brace that opens the body of the declaration that goes on at `start`, or None without one."""
    depth, limit = 0, NEXT_DECLARATION.search(code, start)
    limit = limit.start() if limit else len(code)
    for index in range(start, len(code)):
        character = code[index]
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif depth == 0 and character == "{":
            return index
        elif depth == 0 and (character == "}" or index >= limit):
            return None
    return None


def matching_brace(code, opening):
    depth = 0
    for index in range(opening, len(code)):
        depth += {"{": 1, "}": -1}.get(code[index], 0)
        if depth == 0:
            return index
    return len(code) - 1
