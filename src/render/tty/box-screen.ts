/**
 * A program's own terminal on a person's: colours and cursor moves pass, strings for the terminal itself do not
 * (titles, the clipboard, notifications, downloads, requests that the terminal answers with a text of its own).
 */
export function screenFilter(): (bytes: Uint8Array) => string {
  const decoder = new TextDecoder();
  let held = "";
  let inString = false;
  return (bytes) => {
    let text = held + decoder.decode(bytes, { stream: true });
    held = "";
    let out = "";
    while (text !== "") {
      const next = inString ? END.exec(text) : START.exec(text);
      if (next === null) {
        const cut = text.endsWith("\u001B") ? text.length - 1 : text.length;
        if (!inString) out += text.slice(0, cut);
        held = text.slice(cut);
        break;
      }
      if (!inString) out += text.slice(0, next.index);
      text = text.slice(next.index + next[0].length);
      inString = !inString;
    }
    return out;
  };
}

/** OSC, DCS, SOS, PM, APC: in two characters, or in one. */
const START = /\u001B[\]PX^_]|[\u0090\u0098\u009D\u009E\u009F]/;
/** Until its terminator, or whatever else a terminal takes for an end. */
const END = /\u001B\\|[\u0007\u009C\u0018\u001A]/;

/** Leaves a person's terminal as it was: colours, cursor, the other screen, mouse, bracketed paste. */
export const SCREEN_RESET =
  "\u001B[0m\u001B[?25h\u001B[?1049l\u001B[?1000l\u001B[?1002l\u001B[?1003l\u001B[?1006l\u001B[?2004l\u001B[?1l\u001B>";
