import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { look } from "./cluster-api.ts";
import type { Cluster } from "./cluster.ts";
import { NODE_ADDRESS } from "./cluster-places.ts";
import { nodeCertificate } from "./git-host.ts";

/** A JSON Patch operation. */
export interface Patch {
  readonly op: "add" | "replace" | "remove";
  readonly path: string;
  readonly value?: unknown;
}

/** A mutating webhook that a cluster calls for every pod of the namespaces with its label. */
export interface AdmissionWebhook extends AsyncDisposable {
  /** Labels for the namespaces to which it applies. */
  readonly labels: Readonly<Record<string, string>>;
  /** Patches for the next pods; null: the webhook denies them. */
  changes: readonly Patch[] | null;
  asked: number;
}

const CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

const reviewed = (uid: unknown, changes: readonly Patch[] | null): object => ({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  response:
    changes === null
      ? { uid, allowed: false, status: { message: "no such pods here" } }
      : {
          uid,
          allowed: true,
          patchType: "JSONPatch",
          patch: Buffer.from(JSON.stringify(changes)).toString("base64"),
        },
});

/** `folder` must exist. */
export async function admissionWebhook(cluster: Cluster, folder: string): Promise<AdmissionWebhook> {
  const { api } = cluster;
  const { key, cert, authority } = nodeCertificate(folder);
  const name = `tests-${randomBytes(4).toString("hex")}`;
  const labels = { "harness-tests-webhook": name };
  const answered = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const review: unknown = JSON.parse(await text(request));
    webhook.asked += 1;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(reviewed(look(review, "request", "uid"), webhook.changes)));
  };
  const server = createServer({ key, cert }, (request, response) => void answered(request, response));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const port = await cluster.letOut((server.address() as AddressInfo).port);
  const webhook: AdmissionWebhook = {
    labels,
    changes: [],
    asked: 0,
    [Symbol.asyncDispose]: async () => {
      await api.ask("DELETE", `${CONFIGURATIONS}/${name}`);
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  await api.must("POST", CONFIGURATIONS, {
    metadata: { name },
    webhooks: [
      {
        name: `${name}.example.org`,
        clientConfig: {
          url: `https://${NODE_ADDRESS}:${port}/`,
          caBundle: Buffer.from(authority).toString("base64"),
        },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
        namespaceSelector: { matchLabels: labels },
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        failurePolicy: "Fail",
        timeoutSeconds: 20,
      },
    ],
  });
  return webhook;
}
