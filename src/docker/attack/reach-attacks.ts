import type { Attack } from "./attack.ts";

const NETWORK =
  "an engine whose network `none` is a namespace of its own (docs/engines.md), or --runtime runsc";

const MIN_VALUE_LENGTH = 8;
/** Variables that hold no secret and are the same on many machines. */
const COMMON = /^(PATH|HOME|LANG|LC_\w+|TERM|CI|PWD|SHLVL|GIT_\w+|_|SHELL)$/;

const OWN_SERVER = `child(lambda: (lambda s: (s.bind(("127.0.0.1", 0)), s.listen(), dial(2, *s.getsockname())))(socket.socket()))`;

/** Attacks on networks and on facts about the harness. Connecting a datagram socket only asks for a route. */
export const REACH_ATTACKS: readonly Attack[] = [
  {
    id: "network.routes",
    promise: "network",
    text: "there is no interface but the box's own loopback, and no route",
    attempts: {
      python: {
        IPv4: 'route(2, "198.51.100.53")',
        IPv6: 'route(10, "2001:db8::53")',
        "an interface":
          '[n for _, n in socket.if_nameindex() if n != "lo" and int(open("/sys/class/net/" + n + "/flags").read(), 16) & 1]',
      },
    },
    twin: { python: { loopback: 'route(2, "127.0.0.1")' } },
    remedy: NETWORK,
  },
  {
    id: "network.metadata",
    promise: "network",
    text: "addresses at which clouds hand out keys are not reached",
    attempts: {
      python: {
        "169.254.169.254": 'route(2, "169.254.169.254")',
        "169.254.170.2": 'route(2, "169.254.170.2")',
        "100.100.100.200": 'route(2, "100.100.100.200")',
      },
      shell: { "its name": "grep -i metadata /etc/hosts" },
    },
    twin: { python: { "a server of its own": OWN_SERVER } },
    remedy: NETWORK,
  },
  {
    id: "network.host",
    promise: "network",
    text: "servers on your own loopback, and the engine's bridge, are not reached",
    attempts: {
      python: {
        "127.0.0.1": 'dial(2, "127.0.0.1", {PORT})',
        "::1": 'dial(10, "::1", {PORT6})',
        localhost: 'dial(2, "localhost", {PORT})',
        "the bridge": 'route(2, "172.17.0.1")',
        "an abstract socket": '(lambda s: (s.connect("\\0{ABSTRACT}"), True)[1])(socket.socket(1))',
      },
      shell: { "the host's name": "grep -iE 'host\\.docker|host\\.containers|gateway' /etc/hosts" },
    },
    twin: {
      python: {
        "a server of its own": OWN_SERVER,
        "an abstract socket of its own":
          'child(lambda: (lambda s, c: (s.bind("\\0own-{ABSTRACT}"), s.listen(), c.connect("\\0own-{ABSTRACT}")))(socket.socket(1), socket.socket(1)))',
      },
    },
    remedy: NETWORK,
  },
  {
    id: "network.names",
    promise: "network",
    text: "no resolver of the host is configured, so that no data leaves in names",
    attempts: {
      shell: {
        "a resolver":
          "grep -E '^nameserver' /etc/resolv.conf | grep -vE 'nameserver +(127\\.0\\.0\\.1|::1)$'",
      },
    },
    twin: { shell: { "its own name": "getent hosts localhost" } },
    remedy: NETWORK,
  },
  {
    id: "others.environment",
    promise: "others",
    text: "variables of the harness's own environment are not in the box",
    attempts: {},
    asks: {
      run: "tr '\\0' '\\n' < /proc/self/environ; echo =told=",
      interpret: ({ text }, { env }) => {
        const lines = new Set(text.split("\n"));
        if (!lines.has("=told=")) return [];
        const leaked = Object.entries(env).filter(
          ([name, value]) =>
            (value ?? "").length >= MIN_VALUE_LENGTH && !COMMON.test(name) && lines.has(`${name}=${value}`),
        );
        return leaked.length === 0
          ? [{ name: "variables", kind: "refused", why: "" }]
          : leaked.map(([name]) => ({ name, kind: "through", why: "the same value" }));
      },
    },
    twin: { shell: { "the box's own": '[ "$HOME" != "" ] && [ "$PATH" != "" ]' } },
    remedy: "report it to the maintainers (SECURITY.md)",
  },
];
