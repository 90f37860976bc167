/** What makefiles, and the builds of Maven, Gradle, Ant, MSBuild and sbt, run. */
import { isApart } from "./look/danger.ts";
import { isKnownAddress } from "./known-names.ts";
import { lineAt } from "./look/looked-at.ts";
import type { VetReader } from "./scripts.ts";

interface Target {
  readonly names: readonly string[];
  /** Targets that it needs, and those that its lines have make build. */
  readonly leads: readonly string[];
  readonly first: number;
  readonly end: number;
}

interface MakefileParts {
  readonly asked: string;
  /** Empty if there are no such targets. Line numbers are the same in both texts. */
  readonly apart: string;
}

const RULE = /^([\w./%$(){}][^:=#\t]{0,300}?)\s*::?(?![:=])([^=#]*)(?:#.*)?$/;
const GOALS = new Set(["all", "build", "test", "tests", "check", "install", "default", ".DEFAULT"]);

/**
 * Splits a makefile into what make runs to install, build or test, and what it runs only if somebody asks for it by
 * name.
 */
export function makefileParts(text: string): MakefileParts {
  const lines = text.split("\n");
  const targets = targetsIn(lines);
  const reached = reachedTargets(targets);
  const apartLines = new Set(
    targets
      .filter(({ names }) => names.every((name) => isApart(name) && !reached.has(name)))
      .flatMap(({ first, end }) => Array.from({ length: end - first }, (_, at) => first + at)),
  );
  if (apartLines.size === 0) return { asked: text, apart: "" };
  const only = (wanted: boolean): string =>
    lines.map((line, at) => (apartLines.has(at) === wanted ? line : "")).join("\n");
  return { asked: only(false), apart: only(true) };
}

function targetsIn(lines: readonly string[]): readonly Target[] {
  const targets: Target[] = [];
  for (const [first, line] of lines.entries()) {
    const [, names = "", needs = ""] = RULE.exec(line) ?? [];
    if (names === "") continue;
    let end = first + 1;
    while (end < lines.length && /^(?:\t|\s*$|#)/.test(lines[end] ?? "")) end += 1;
    const called = lines
      .slice(first + 1, end)
      .flatMap((each) =>
        Array.from(each.matchAll(/(?:\$[({]MAKE[)}]|\bmake)\s+([\w .-]+)/g), ([, words = ""]) =>
          wordsOf(words),
        ).flat(),
      );
    targets.push({ names: wordsOf(names), leads: [...wordsOf(needs), ...called], first, end });
  }
  return targets;
}

const wordsOf = (text: string): readonly string[] => text.split(/[\s;|]+/).filter((word) => word !== "");

/** The targets reached from the default goal of make and from the usual goals. */
function reachedTargets(targets: readonly Target[]): ReadonlySet<string> {
  const first = targets.flatMap(({ names }) => names).find((name) => !name.startsWith("."));
  const run = new Set([...GOALS, ...(first === undefined ? [] : [first])]);
  const leads = new Map<string, string[]>();
  for (const target of targets)
    if (!target.names.includes(".PHONY"))
      for (const name of target.names) leads.set(name, [...(leads.get(name) ?? []), ...target.leads]);
  for (const name of run) for (const each of leads.get(name) ?? []) run.add(each);
  return run;
}

/* Maven, Gradle, Ant, MSBuild and sbt: mostly commands in XML, word by word. */

/** The XML without its comments, with the same line numbers. */
const withoutComments = (xml: string): string =>
  xml.replaceAll(/<!--[^]*?-->/g, (all) => all.replaceAll(/[^\n]/g, ""));

const unescaped = (xml: string): string =>
  xml
    .replaceAll(/<!\[CDATA\[|\]\]>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&apos;", "'")
    .replaceAll("&#10;", "\n")
    .replaceAll("&#xA;", "\n")
    .replaceAll("&amp;", "&");

/** Joins words from elements and attributes into the line that is run. */
const asLine = (xml: string): string =>
  unescaped(
    xml
      .replaceAll(/<\/(?:exec|Exec|target|Target|java|apply)>/g, " ")
      .replaceAll(/\s*<\/?(?:arg(?:ument)?|executable|commandlineArgs)>\s*/g, " ")
      .replaceAll(
        /<exec\b[^>]{0,200}?\bexecutable\s*=\s*["']([^"'>]{0,300})["'][^>]{0,200}>\s*/g,
        "<exec> $1 ",
      )
      .replaceAll(
        /\s*<arg\s+(?:value|line|path|file)\s*=\s*("[^"]{0,2000}"|'[^']{0,2000}')\s*\/>/g,
        (_, words: string) => ` ${words.slice(1, -1)}`,
      ),
  );

/** Shows that a plugin runs something, whatever its name is. */
const RUNS =
  /<executable>|<exec\b|<scripts?>|<commandlineArgs>|<command>|<source>\s*<!\[CDATA|<(?:tasks|target)>|-antrun-|<artifactId>(?:exec|groovy|gmavenplus|gmaven|frontend|script|jython|jruby|beanshell)[\w-]*-plugin/;

const maven: VetReader = async ({ path, text: source = "" }, { scripts, found }) => {
  const text = withoutComments(source);
  for (const { 0: block, index } of text.matchAll(/<plugin>[^]*?(?:<\/plugin>|$)/g)) {
    if (!RUNS.test(block)) continue;
    const name = /<artifactId>\s*([\w.-]{1,100})/.exec(block)?.[1] ?? "a plugin";
    const line = lineAt(text, index + block.indexOf("<artifactId>"));
    found.add("install.script", `maven runs ${name}`, { path, line });
    await scripts.look({ path, line, what: name, text: asLine(block), runs: "itself" });
  }
  for (const { 1: address = "", index } of text.matchAll(
    /<(?:url|systemPath)>\s*(http:\/\/(?!localhost|127\.)[^<\s]{1,300})/g,
  )) {
    const before = text.slice(Math.max(0, index - 400), index);
    if (
      /<(?:repository|pluginRepository|snapshotRepository|mirror)>(?![^]*<\/(?:repository|pluginRepository|mirror)>)/.test(
        before,
      )
    )
      found.add("install.insecure", address, { path, line: lineAt(text, index) });
  }
};

const wrapper: VetReader = ({ path, text = "" }, { found }) => {
  for (const { 1: key = "", 2: value = "", index } of text.matchAll(
    /^\s*(distributionUrl|wrapperUrl)\s*=\s*(\S+)/gm,
  )) {
    const address = value.replaceAll("\\", "");
    if (!isKnownAddress(address, "wrappers") && !address.startsWith("https://github.com/gradle/"))
      found.add("install.wrapper", `${key}=${address}`, { path, line: lineAt(text, index) });
  }
};

const jvmConfig: VetReader = ({ path, text = "" }, { found }) => {
  const match =
    /-(?:javaagent|agentpath|agentlib|Xbootclasspath)[^\s]*|-XX:(?:OnError|OnOutOfMemoryError|Flags)=[^\s]*/.exec(
      text,
    );
  if (match !== null) found.add("install.settings", match[0], { path, line: lineAt(text, match.index) });
};

const gradle: VetReader = async ({ path, text = "" }, { scripts, found }) => {
  const insecure = /\burl\s*(?:=|\()?\s*(?:uri\()?\s*["'](http:\/\/(?!localhost|127\.)[^"']{1,200})/.exec(
    text,
  );
  if (insecure !== null)
    found.add("install.insecure", insecure[1] ?? "", { path, line: lineAt(text, insecure.index) });
  await scripts.look({ path, what: "gradle", text: joinedLists(text), runs: "asked" });
};

/** Joins words from a list into the line that is run. */
const joinedLists = (text: string): string =>
  text.replaceAll(
    /["'](?:\/bin\/)?((?:ba|z|da)?sh|cmd|powershell|pwsh)["']\s*,\s*["'](-\w{1,3}|\/c)["']\s*,\s*(?=["'])/g,
    "$1 $2 ",
  );

const xmlBuild =
  (what: string): VetReader =>
  ({ path, text = "" }, { scripts }) =>
    scripts.look({ path, what, text: asLine(withoutComments(text)), runs: "asked" });

/** By the path in lower case. */
export const XML_BUILDS: readonly (readonly [RegExp, VetReader])[] = [
  [/(?:^|\/)pom\.xml$|\.pom$|(?:^|\/)\.(?:mvn|m2)\/(?:.*\/)?settings\.xml$/, maven],
  [
    /(?:^|\/)\.mvn\/extensions\.xml$/,
    ({ path }, { found }) => found.add("install.script", "maven loads extensions", { path }),
  ],
  [/(?:^|\/)\.mvn\/(?:jvm|maven)\.config$|(?:^|\/)gradle\.properties$|(?:^|\/)\.(?:sbt|jvm)opts$/, jvmConfig],
  [/(?:gradle|maven)-wrapper\.properties$/, wrapper],
  [
    /\.gradle(?:\.kts)?$|(?:^|\/)(?:buildsrc|build-logic|gradle\/plugins)\/.*\.(?:kts?|groovy|java|scala)$/,
    gradle,
  ],
  [/\.sbt$|(?:^|\/)project\/[^/]+\.scala$/, gradle],
  [/(?:^|\/)build[\w.-]*\.xml$/, xmlBuild("ant runs it")],
  [/\.(?:cs|fs|vb|vcx)proj$|\.(?:props|targets)$/, xmlBuild("MSBuild runs it")],
];
