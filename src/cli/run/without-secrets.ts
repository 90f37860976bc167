import type { Provider } from "../../core/provider.ts";
import { maskSecrets } from "../../core/secrets.ts";
import { cleaned } from "../../render/cleaned.ts";

/**
 * A provider to which nothing goes that shows by its form to be a secret, whoever said it and whenever: what an earlier
 * model of the same session was shown is in its history. The same text is masked the same way in every request.
 */
export const withoutSecrets = (provider: Provider): Provider => ({
  stream: (request, signal) =>
    provider.stream({ ...request, messages: cleaned(request.messages, maskSecrets) }, signal),
  capabilities: (model, signal) => provider.capabilities(model, signal),
});
