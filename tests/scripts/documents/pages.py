"""What a page in Markdown holds: blocks of commands, commands in sentences, and code in other languages."""

import re


def blocks(text):
    """Yields (language, code) of each block: a fence's word, or None where lines are indented by four."""
    language, lines, fenced = None, [], False
    for line in text.splitlines() + [""]:
        if line.startswith("```"):
            if lines:
                yield language, "\n".join(lines) + "\n"
            fenced, language, lines = not fenced, line[3:] or None, []
        elif fenced:
            lines.append(line)
        elif line.startswith("    "):
            lines.append(line[4:])
        elif lines:
            yield None, "\n".join(lines) + "\n"
            lines = []


def commands(text, programs):
    """Returns the commands of all blocks, in order; those over several lines as one. What stands
    between them is what they print."""
    found, open_line = [], False
    for language, code in blocks(text):
        if language not in (None, "sh", "bash"):
            continue
        for line in code.splitlines():
            if open_line:
                found[-1] = found[-1].removesuffix("\\") + line.strip()
            elif line.split(" ")[0] in programs:
                found.append(line)
            else:
                continue
            open_line = found[-1].endswith(("\\", "|"))
        open_line = False
    return [without_comment(command) for command in found]


def without_comment(command):
    return re.sub(r"\s+#\s.*", "", command).strip()


def spans(text):
    """Returns the pieces of code in sentences, each on one line."""
    fences = re.sub(r"(?ms)^```.*?^```$", "", text)
    sentences = "\n".join(line for line in fences.splitlines() if not line.startswith("    "))
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", sentences)]


def commands_in_sentences(text, programs):
    """Returns those pieces that are a program with arguments."""
    return [span for span in spans(text) if " " in span and span.split(" ")[0] in programs]


def options(command):
    return re.findall(r"(?<![\w-])--[a-z][a-z-]*", command)
