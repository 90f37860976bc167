import type { Arg, Found, Model, Use } from "../model.ts";
import { fileEffects, inlineEffects, inputEffects } from "./code.ts";

/** A program as text behind an option, as a file, or from stdin. */
function runner(inline: readonly string[]): (use: Use) => readonly Found[] {
  return (use) => {
    const texts = use.options.filter(({ name }) => inline.includes(name));
    if (texts.length > 0) return texts.map(({ value }) => inlineEffects(value ?? whole(use)));
    const [file] = use.operands;
    return file === undefined || file.value === "-" ? inputEffects(use) : [fileEffects(file, use)];
  };
}

const whole = ({ program, span }: Use): Arg => ({ kind: "dynamic", value: program, span });

/** `-i` changes the files that are given. */
function perl(use: Use): readonly Found[] {
  const texts = use.options.filter(({ name }) => name === "-e" || name === "-E");
  const inPlace = use.options.some(({ name }) => name === "-i");
  if (texts.length === 0) return runner([])(use);
  const files = use.operands.map((arg): Found => ({
    kind: inPlace ? "write" : "read",
    path: use.place(arg),
    span: arg.span,
  }));
  return [...texts.map(({ value }) => inlineEffects(value ?? whole(use))), ...files];
}

/** Settings that only say how much. */
const HOW_MUCH =
  /^(?:memory_limit|max_execution_time|display_errors|error_reporting|zend\.assertions|assert\.exception|xdebug\.mode|date\.timezone)=[\w.-]*$/;

/** With `-S` it is a server of the box, with `-l` it reads a file: in both nothing comes in by stdin. */
function php(use: Use): readonly Found[] {
  const settings = use.options.flatMap(({ name, value }) => {
    if (name !== "-d" || value === null) return [];
    const doubt = use.doubt("option.loads-code", value);
    return [
      value.kind === "literal" && HOW_MUCH.test(value.value) ? { ...doubt, inside: true as const } : doubt,
    ];
  });
  const served = use.options.flatMap(({ name, value }): readonly Found[] =>
    name === "-S" && value !== null ? [{ kind: "network", hosts: [], inside: true, span: value.span }] : [],
  );
  const checks = use.options.some(({ name }) => name === "-l");
  const code: readonly Found[] = [{ kind: "code", from: "project", path: use.folder }];
  const listens = checks || served.length > 0;
  const ran = listens && use.input !== "network" ? code : runner(["-r", "-B", "-R", "-E"])(use);
  return [...settings, ...served, ...ran];
}

const interpreter = (options: string, inline: readonly string[], tells: string): Model => ({
  options,
  operands: "data*",
  strict: true,
  tells,
  also: runner(inline),
});

export const INTERPRETERS: Readonly<Record<string, Model>> = {
  perl: {
    options: "-acnpsStTuUwWX -e: -E: -i? -l? -0? -F: -I:loads -M:loads -m:loads -C? -D? -x?",
    operands: "data*",
    strict: true,
    tells: "-v -V --version --help -h",
    also: perl,
  },
  ruby: interpreter(
    "-acnpsSlwW -e: -r:loads -I:loads -i?write -C:in -E: -K: -x? -y --enable= --disable= --yjit --verbose",
    ["-e"],
    "-v --version --help -h",
  ),
  irb: interpreter("", [], "--version -v"),
  php: {
    ...interpreter(
      "-anqsw -r: -B: -R: -E: -F:project -f:project -l:read -c:loads -d: -z:loads -S: -t:in",
      ["-r", "-B", "-R", "-E"],
      "-v --version -m --help -h",
    ),
    also: php,
  },
  lua: interpreter("-EWi -e: -l:loads", ["-e"], "-v"),
  luajit: interpreter("-EWi -e: -l:loads -j:loads -O? -b:", ["-e"], "-v"),
  tclsh: interpreter("", [], ""),
  wish: interpreter("", [], ""),
  expect: interpreter("-dinv -c: -f:project -b:", ["-c"], "-v"),
  Rscript: interpreter("-e: --vanilla --verbose", ["-e"], "--version"),
  R: interpreter("-q -e: -f:project --vanilla --no-save --slave --quiet", ["-e"], "--version"),
  julia: interpreter("-q -e: -E: -L:loads -p: -t:", ["-e", "-E"], "-v --version"),
  guile: interpreter("-c: -l:loads -s:project", ["-c"], "--version -v"),
  osascript: interpreter("-e: -l:", ["-e"], ""),
  groovy: interpreter("-e: --classpath=loads", ["-e"], "-v --version"),
  scala: interpreter("-e:", ["-e"], "-version --version"),
  pwsh: interpreter("", [], "--version -v"),
  powershell: interpreter("", [], ""),
  ghci: interpreter("", [], "--version"),
  erl: interpreter("", [], ""),
  iex: interpreter("", [], "--version"),
  sbcl: interpreter("--script=project", [], "--version"),
  racket: interpreter("-e:", ["-e"], "--version"),
};
