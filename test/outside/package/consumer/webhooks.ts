/** A consumer's receiver, for any runtime with Web Crypto. */
import { verifyWebhook } from "generation-gateway/webhooks"
import type { VerifyResult } from "generation-gateway/webhooks"
import vectors from "./vectors.json" with { type: "json" }

for (const vector of vectors) {
  const headers = new Headers({
    "X-Service-Webhook-Id": vector.delivery_id,
    "X-Service-Webhook-Timestamp": String(vector.timestamp),
    "X-Service-Webhook-Signature": vector.signature
  })
  const now = new Date(vector.timestamp * 1000)
  const check = (body: string): Promise<VerifyResult> =>
    verifyWebhook({ headers, body, secret: vector.secret, now })
  if (!(await check(vector.body)).valid) throw new Error(vector.name)
  if ((await check(`${vector.body} `)).valid) throw new Error(`${vector.name}: changed`)
}
console.log("all vectors verified")
