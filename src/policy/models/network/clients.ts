import { hostsOf } from "../hosts.ts";
import type { Arg, Found, Model, Use } from "../model.ts";
import { downloads } from "./downloads.ts";
import { given, named, part, reachesAnyway, reading, remote, valuesOf, writing } from "./parts.ts";

/** `name=@file`, `name:=@file`, `name@file`, `Header:@file`: sent to the other side. */
const SENT = /^[^=@:]*(?::?=@|:@|@)(.+)$/;

/** The first operand, or the one behind a method, is the address; all others are fields. */
function request(use: Use): readonly Found[] {
  const [first, ...rest] = use.operands;
  const method = first !== undefined && /^[A-Z]+$/.test(first.value);
  const address = method ? rest[0] : first;
  const fields = method ? rest.slice(1) : rest;
  const sessions = valuesOf(use, "--session", "--session-read-only");
  return [
    { kind: "network", hosts: address === undefined ? [] : hostOf(address) },
    ...fields.flatMap((field) => {
      const file = SENT.exec(field.value)?.[1];
      return file === undefined ? [] : [reading(part(field, file.replace(/;type=.*$/, "")), use)];
    }),
    ...(given(use, "-d", "--download") && !given(use, "-o", "--output")
      ? downloads(use, address === undefined ? [] : [address])
      : []),
    ...sessions.filter(({ value }) => value.includes("/")).map((file) => writing(file, use)),
  ];
}

/** `:3000/path` is this machine. */
const hostOf = (address: Arg): readonly string[] =>
  address.value.startsWith(":") ? ["localhost"] : hostsOf(address);

const HTTPIE: Model = {
  options: `-jfFdchbvSqIx -p: -s: -a: -A: -P: -m: -o:write --json --form --multipart --follow --download --continue
    --headers --body --meta --verbose --all --stream --quiet --pretty= --style= --format-options= --unsorted --sorted
    --print= --history-print= --auth= --auth-type= --bearer= --ignore-netrc --ignore-stdin --max-redirects= --max-headers=
    --timeout= --check-status --path-as-is --chunked --compress --raw= --boundary= --verify= --ssl= --ciphers=
    --default-scheme= --http-version= --https --offline --curl --native-tls --response-charset= --response-mime=
    --debug --traceback --session= --session-read-only= --proxy= --output=write --cert=read --cert-key=read`,
  operands: "data*",
  tells: "--version -V --help",
  also: request,
};

/** Pages, in a terminal or in a window; all of them run scripts or helpers. */
const BROWSERS = `lynx w3m links links2 elinks browsh google-chrome google-chrome-stable chrome chromium chromium-browser
  firefox firefox-esr brave brave-browser opera vivaldi microsoft-edge safari epiphany midori qutebrowser`;

const FETCHERS = `fetch lwp-request GET HEAD POST httrack youtube-dl gallery-dl transmission-cli transmission-remote rtorrent
  deluge qbittorrent-nox grpcurl websocat wscat hey wrk ab siege vegeta k6 oha bombardier newman restish hurl
  webbrowser sensible-browser www-browser x-www-browser gnome-open kde-open wslview`;

const VIDEOS: Model = {
  options: `-qvsiFjJ46 -f: -S: -r: -R: -I: -U: -x -k -w -c -N: --quiet --simulate --no-simulate --list-formats --dump-json
    --print= --format= --extract-audio --audio-format= --audio-quality= --no-playlist --yes-playlist --playlist-items=
    --write-subs --write-auto-subs --sub-langs= --sub-lang= --skip-download --get-url --get-title --verbose
    --no-warnings --newline --no-progress --restrict-filenames -o:write --output=write -P:target --paths=target
    -a:read --batch-file=read --cookies=write --download-archive=write --proxy=host --exec=shell
    --config-location=loads --config-locations=loads --plugin-dirs=loads --external-downloader=loads
    --downloader=loads --ffmpeg-location=loads`,
  operands: "host*",
  tells: "--version --help -h",
  also: (use) => [
    ...reachesAnyway(use),
    ...(given(use, "-o", "--output", "-P", "--paths") ? [] : downloads(use, [])),
  ],
};

export const CLIENTS: Readonly<Record<string, Model>> = {
  ...named("http https httpie xh xhs", HTTPIE),
  ...named(BROWSERS, remote("--version -version --help")),
  ...named(FETCHERS, remote()),
  "yt-dlp": VIDEOS,
};
