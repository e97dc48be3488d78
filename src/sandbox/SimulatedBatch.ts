import { createHash } from "node:crypto"
import { memberOf } from "../domain/json/JsonBytes.ts"
import { simulateCall } from "./UpstreamSimulator.ts"

/** The result line for a request of a batch, in its vendor's format. Equal requests get equal lines. */
export const simulatedLine = (endpoint: string, line: Uint8Array): Uint8Array =>
  endpoint === "/v1/messages" ? messageLine(endpoint, line) : openAiLine(endpoint, line)

const openAiLine = (endpoint: string, line: Uint8Array): Uint8Array => {
  const body = memberOf(line, "body") ?? new Uint8Array()
  const customId = memberOf(line, "custom_id") ?? Buffer.from("null")
  const seed = createHash("sha256").update(line).digest("hex").slice(0, 24)
  const answer = simulateCall("openai", { path: endpoint, body })
  return Buffer.concat([
    Buffer.from(`{"id":"batch_req_${seed}","custom_id":`),
    customId,
    Buffer.from(`,"response":{"status_code":${answer.status},"request_id":"req_${seed}","body":`),
    answer.body,
    Buffer.from('},"error":null}\n')
  ])
}

const messageLine = (path: string, line: Uint8Array): Uint8Array => {
  const body = memberOf(line, "params") ?? new Uint8Array()
  const answer = simulateCall("anthropic", { path, body })
  const [kind, name] = answer.status === 200 ? ["succeeded", "message"] : ["errored", "error"]
  return Buffer.concat([
    Buffer.from('{"custom_id":'),
    memberOf(line, "custom_id") ?? Buffer.from("null"),
    Buffer.from(`,"result":{"type":"${kind}","${name}":`),
    answer.body,
    Buffer.from("}}\n")
  ])
}
