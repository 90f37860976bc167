import type { Skip } from "../words.ts";

const LOCKS = new Set(
  `package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock cargo.lock go.sum go.work.sum
  poetry.lock pdm.lock uv.lock pixi.lock pipfile.lock composer.lock gemfile.lock gems.locked podfile.lock pubspec.lock
  mix.lock rebar.lock flake.lock shard.lock paket.lock packages.lock.json project.assets.json gradle.lockfile
  package.resolved cartfile.resolved conan.lock .terraform.lock.hcl .pnp.cjs .pnp.loader.mjs`.split(/\s+/),
);

const GENERATED_NAME =
  /\.pb\.(?:go|cc|h|c|swift|dart)$|\.pb\.gw\.go$|_pb2(?:_grpc)?\.pyi?$|_pb\.(?:js|ts|d\.ts|rb)$|\.g(?:\.i)?\.(?:cs|dart)$|\.designer\.(?:cs|vb)$|\.generated\.[a-z]+$|[._](?:gen|generated)\.(?:go|rs|ts|js|py)$|\.freezed\.dart$|\.(?:js|mjs|cjs|css|ts)\.map$/;

const MINIFIED_NAME = /[.-]min\.(?:js|mjs|cjs|css)$/;

/** Long lines are usual in prose. */
const PROSE = new Set(["markdown", "text", "restructuredtext", "asciidoc", "tex", "html"]);

/** What a file is skipped for by its name alone. */
export function skippedName(path: string): Skip | undefined {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  if (LOCKS.has(name)) return "lock";
  if (GENERATED_NAME.test(name)) return "generated";
  return MINIFIED_NAME.test(name) ? "minified" : undefined;
}

/** What a file is skipped for by its text. */
export function skippedText(text: string, language: string): Skip | undefined {
  if (saysGenerated(text, language)) return "generated";
  return !PROSE.has(language) && minified(text) ? "minified" : undefined;
}

/** An average that only a program writes. */
const AVERAGE = 250;
const LONG = 500;
/** So many ordinary lines and the file is somebody's, whatever its long ones hold. */
const ORDINARY = 100;

function minified(text: string): boolean {
  if (text.length < 2 * AVERAGE) return false;
  let ordinary = 0;
  let long = 0;
  let at = 0;
  while (at < text.length) {
    const found = text.indexOf("\n", at);
    const end = found === -1 ? text.length : found;
    if (end - at > LONG && !text.slice(at, end - 1).includes("\r")) long += 1;
    else if (end - at > 1) ordinary += 1;
    at = end + 1;
  }
  return long > 0 && text.length / (ordinary + long) > AVERAGE && (ordinary < ORDINARY || long > ordinary);
}

/** The comments at the head of a file, in which generators sign. */
const HEAD = 4096;
const COMMENT = /^\s*(?:\/\/|\/\*|\*|#|--|;|<!--|%|"""|'''|\(\*|@rem\b|rem\b)/i;
const BEFORE = /^\s*$|^\s*<\?(?:php|xml)|^#!|^\s*["']use \w+["'];?\s*$|^-\*-/;

const SIGNS: readonly RegExp[] = [
  /\bcode generated\b[^\n]{0,300}\bdo not edit\b/i,
  /^\W*@generated\b/m,
  /<auto-?generated/i,
  /^\W*(?:this (?:file|code|source|module|class|script)\b.{0,40}?\b)?(?:(?:is|was|has been) )?auto(?:matically)?[- ]?generated (?:by|from|using|with|file|code|on|at|via|-)/im,
  /\bthis (?:file|code|source|module|class|script) (?:is|was|has been) (?:auto(?:matically)?[- ]?)?generated\b/i,
  /\bgenerated\b[^]{0,160}\bdo not (?:edit|modify|change)\b/i,
  /\bdo not (?:edit|modify|change)\b[^]{0,160}\bgenerated\b/i,
];

/** Whether the comments before the first line of code say so; what is said further down is about something else. */
function saysGenerated(text: string, language: string): boolean {
  const head = text.slice(0, HEAD);
  if (!/generated/i.test(head)) return false;
  const comments: string[] = [];
  let inside = false;
  for (const line of head.split("\n")) {
    const opens = COMMENT.test(line) && !(language === "markdown" && !line.includes("<!--"));
    if (!inside && !opens && !BEFORE.test(line)) break;
    if (inside || opens) comments.push(line);
    if (/\/\*|<!--/.test(line)) inside = true;
    if (/\*\/|-->/.test(line)) inside = false;
  }
  const said = comments.join("\n");
  return SIGNS.some((sign) => sign.test(said));
}
