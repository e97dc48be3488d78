import { createHmac } from "node:crypto"
import type { JobAuth } from "../../catalog/jobs/JobProtocol.ts"

/** The credentials of one request. */
export interface Credential {
  readonly headers: Readonly<Record<string, string>>
  /** Added to the URL only when it is sent, and never stored in a handle. */
  readonly query?: readonly [name: string, value: string]
}

/** The lifetime of a signed token, in seconds. It starts slightly in the past, because clocks differ. */
const tokenSeconds = 1800
const tokenSkewSeconds = 5

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url")

/** Signs a JWT with HS256. RFC 7519 */
const tokenOf = (issuer: string, secret: string, nowMillis: number): string => {
  const now = Math.floor(nowMillis / 1000)
  const claims = { iss: issuer, exp: now + tokenSeconds, nbf: now - tokenSkewSeconds }
  const signed = `${encoded({ alg: "HS256", typ: "JWT" })}.${encoded(claims)}`
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`
}

/** The credentials that a description's `auth` defines. docs/vendors-as-files.md#authentication */
export const credentialOf = (auth: JobAuth, key: string, nowMillis: number): Credential => {
  switch (auth.scheme) {
    case "bearer":
      return { headers: { authorization: `Bearer ${key}` } }
    case "header":
      return { headers: { [auth.name.toLowerCase()]: `${auth.prefix ?? ""}${key}` } }
    case "query":
      return { headers: {}, query: [auth.name, key] }
    case "jwt": {
      const at = key.indexOf(":")
      const token = tokenOf(key.slice(0, at), key.slice(at + 1), nowMillis)
      return { headers: { authorization: `Bearer ${token}` } }
    }
  }
}
