import type { IncomingMessage, ServerResponse } from "node:http";
import { shown } from "./authority.ts";
import { type EgressGate, isAnswered, type Judged } from "./egress-gate.ts";
import { answerInWords, forwardRequest } from "./forward-request.ts";
import { isDenial } from "./judge-host.ts";
import type { HostConnection } from "./reach-host.ts";
import { placeholderIn } from "./secret-swap.ts";

/** Serves a request that names its whole URL: `GET http://host/path`. Each request is judged separately. */
export async function servePlain(
  gate: EgressGate,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const method = request.method ?? "";
  const match = /^http:\/\/([^/?#]*)([^#]*)$/is.exec(request.url ?? "");
  if (match === null) return misdirected(gate, request, response);
  const [, named = "", rest = ""] = match;
  const judged = gate.judge(named, 80, method);
  if (isDenial(judged)) return answerInWords(response, 403, judged.reason);
  const target = rest.startsWith("/") ? rest : `/${rest}`;
  const denial = gate.judgeRequest(request, target, judged, 80) ?? judgeOpenly(gate, request, judged);
  if (denial !== undefined) return answerInWords(response, 403, denial.reason);
  gate.hold(request.socket, judged);
  const reached = await gate.reach(judged, "http");
  if (isAnswered(reached)) return answerInWords(response, reached.status, reached.words);
  await passOn(gate, { request, response, target, judged, reached });
}

interface PassedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: string;
  readonly judged: Judged;
  readonly reached: HostConnection;
}

async function passOn(
  gate: EgressGate,
  { request, response, target, judged, reached }: PassedRequest,
): Promise<void> {
  const { socket, proxy } = reached;
  const { authority } = judged;
  const host = authority.port === 80 ? shown(authority).replace(/:80$/, "") : shown(authority);
  const line = gate.ledger.allowed(judged.asked);
  const ended = await forwardRequest({
    request,
    response,
    target: proxy === null ? target : `http://${host}${target}`,
    host,
    connection: { createConnection: () => socket },
    extra:
      proxy?.authorization === null || proxy === null ? [] : ["Proxy-Authorization", proxy.authorization],
    meter: gate.meter,
    line,
    idleMs: gate.limits.idleMs,
  });
  socket.destroy();
  line.end(ended?.rule, ended?.reason);
  if (ended !== null) answerInWords(response, ended.rule === "budget" ? 403 : 502, ended.reason);
}

/** A secret's value is not sent where everybody on the way can read it. */
function judgeOpenly(
  gate: EgressGate,
  request: IncomingMessage,
  { asked, allowance }: Judged,
): { readonly reason: string } | undefined {
  const name = placeholderIn(request, allowance.secrets);
  if (name === undefined) return undefined;
  const reason = `the secret ${name} is put into requests by https only, and this one is http`;
  return gate.deny(asked, { rule: "secret", reason });
}

function misdirected(gate: EgressGate, request: IncomingMessage, response: ServerResponse): void {
  const reason = /^https:/i.test(request.url ?? "")
    ? "a request for https has to come through CONNECT"
    : "this is a proxy: a request names http://host/path, or comes through CONNECT";
  gate.denyUnread(request.method ?? "", "authority", reason);
  answerInWords(response, 403, reason);
}
