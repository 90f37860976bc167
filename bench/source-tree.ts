import { chown, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";

/**
 * Source files of several languages as in real projects: about 6 KB each, some twenty per folder, the same in every
 * run.
 */

const WORDS =
  `account address amount archive batch block bucket buffer cache channel checksum child client column commit config
   connection context cookie count cursor customer deadline default digest document domain driver edge element entry error
   event export field file filter flag folder format frame handle header host image index input invoice item job key label
   layer length limit line link list listener lock log map mask matrix member merge message method metric mode model module
   name network node number object offset option order output owner packet page panel parent parser patch path pattern
   payload peer pixel plan policy pool port prefix process profile proxy query queue range rate record region render report
   request response result retry role route row rule sample scale schema scope score segment server session shard signal
   size slice socket source span stack stage state status step storage stream string table tag target task template tenant
   thread ticket timer token total trace transfer tree trigger tuple type unit update upload user value vector version view
   volume watcher weight window worker writer zone`.split(/\s+/);

type Pick = <T>(from: readonly T[]) => T;

/** A small number generator: it only needs to be fast and repeatable. */
function picker(seed: number): Pick {
  let state = seed >>> 0 || 1;
  return <T>(from: readonly T[]): T => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return from[(state >>> 0) % from.length] as T;
  };
}

const cap = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

type Part = (pick: Pick) => string;

const script: Part = (pick) => {
  const [a, b, c] = [pick(WORDS), pick(WORDS), pick(WORDS)];
  return `/** Finds the ${a} of a ${b} by its ${c}, and says why there is none. */
export function ${a}Of${cap(b)}(${b}: ${cap(b)}, ${c}: string): ${cap(a)} | undefined {
  const found = ${b}.${a}s.filter((each) => each.${c} === ${c});
  if (found.length === 0) throw new Error(\`no ${a} with ${c} \${${c}}\`);
  for (const each of found) {
    if (each.${pick(WORDS)} > ${b}.${pick(WORDS)}) return each;
    each.${pick(WORDS)}.push(${c});
  }
  return found.at(-1);
}
`;
};

const python: Part = (pick) => {
  const [a, b, c] = [pick(WORDS), pick(WORDS), pick(WORDS)];
  return `class ${cap(a)}${cap(b)}:
    """Keeps every ${c} of a ${a} until the ${b} is closed."""

    def __init__(self, ${a}, ${c}=None):
        self.${a} = ${a}
        self._${c}s = list(${c} or [])

    def ${pick(WORDS)}_${pick(WORDS)}(self, ${b}):
        for each in self._${c}s:
            if each.${b} == ${b}:
                return each.${pick(WORDS)}
        raise KeyError(f"no ${c} for {${b}}")

`;
};

const go: Part = (pick) => {
  const [a, b, c] = [pick(WORDS), pick(WORDS), pick(WORDS)];
  return `// ${cap(a)}${cap(b)} holds what is known of one ${c}.
type ${cap(a)}${cap(b)} struct {
	${cap(c)} string
	${cap(pick(WORDS))} int
}

// ${cap(pick(WORDS))} gives the ${c}, or an error where the ${a} is not open.
func (x *${cap(a)}${cap(b)}) ${cap(pick(WORDS))}(ctx context.Context, ${b} int) (string, error) {
	if x.${cap(c)} == "" {
		return "", fmt.Errorf("${a}: no ${c} for %d", ${b})
	}
	return x.${cap(c)}, nil
}

`;
};

const markdown: Part = (pick) => {
  const words = Array.from({ length: 60 }, () => pick(WORDS)).join(" ");
  return `## The ${pick(WORDS)} of a ${pick(WORDS)}\n\n${words}\n\n`;
};

const json: Part = (pick) => `  "${pick(WORDS)}-${pick(WORDS)}": { "${pick(WORDS)}": "${pick(WORDS)}" },\n`;

const KINDS: readonly (readonly [string, Part, string])[] = [
  ["ts", script, 'import { thing } from "./thing.ts";\n\n'],
  ["py", python, "import os\nimport sys\n\n\n"],
  ["go", go, 'package store\n\nimport (\n\t"context"\n\t"fmt"\n)\n\n'],
  ["ts", script, ""],
  ["js", (pick) => script(pick).replaceAll(/: [A-Z]\w+(?: \| undefined)?|: string/g, ""), ""],
  ["md", markdown, "# Notes\n\n"],
  ["py", python, ""],
  ["json", json, "{\n"],
];

const BYTES = 6000;
const PER_FOLDER = 20;

function textOf(kind: (typeof KINDS)[number], pick: Pick): string {
  const [, part, head] = kind;
  let text = head;
  while (text.length < BYTES) text += part(pick);
  return text;
}

/** Writes `count` files below an existing folder; boxes work as its owner. */
export async function sourceTree(folder: string, count: number): Promise<void> {
  for (let from = 0; from < count; from += PER_FOLDER) {
    const inside = path.join(folder, `part${Math.floor(from / 1000)}`, `unit${from / PER_FOLDER}`);
    await mkdir(inside, { recursive: true });
    const files = Array.from({ length: Math.min(PER_FOLDER, count - from) }, (_, at) => from + at);
    await Promise.all(files.map((at) => written(inside, at)));
  }
  if (process.getuid?.() === 0) await chown(folder, OWNER, OWNER);
}

const OWNER = 1000;

async function written(inside: string, at: number): Promise<void> {
  const pick = picker(at * 7919 + 7);
  const kind = pick(KINDS);
  await writeFile(path.join(inside, `${pick(WORDS)}_${pick(WORDS)}_${at}.${kind[0]}`), textOf(kind, pick));
}
