import { parseJson } from "../../format/json.ts"
import { webhookTexts } from "../../texts/en/webhooks.ts"

const words = webhookTexts.signature

/** What a receiver got. */
export interface Received {
  readonly serviceName: string
  readonly secret: string
  /** As pasted, one per line. */
  readonly headers: string
  readonly body: string
  readonly atMillis: number
  /** The body that was sent, according to the log. `undefined`: the log does not have it. */
  readonly sent: string | undefined
}

export type Part = "header" | "time" | "secret" | "body" | "signature"

export interface Finding {
  readonly part: Part
  readonly text: string
}

export interface Report {
  readonly isValid: boolean
  /** What differs, part by part, and what will fail soon. */
  readonly findings: ReadonlyArray<Finding>
}

const skewSecondsMax = 300
const utf8 = new TextEncoder()

/** `v1=` and the HMAC-SHA256 in hex. docs/reference/webhooks.md#signature */
export const signatureOf = async (secret: string, signed: string): Promise<string> => {
  const key = await crypto.subtle.importKey(
    "raw",
    utf8.encode(secret),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"]
  )
  const mac = await crypto.subtle.sign("HMAC", key, utf8.encode(signed))
  return `v1=${[...new Uint8Array(mac)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`
}

/** The values of each header, by lower-case name. */
export const readHeaders = (text: string): ReadonlyMap<string, ReadonlyArray<string>> => {
  const found = new Map<string, ReadonlyArray<string>>()
  for (const line of text.split(/\r?\n/u)) {
    const [, name = "", value = ""] = /^\s*"?([\w-]+)"?\s*:\s*"?(.*?)"?,?\s*$/u.exec(line) ?? []
    const key = name.toLowerCase()
    if (key !== "") found.set(key, [...(found.get(key) ?? []), value])
  }
  return found
}

const headerNames = (serviceName: string) => {
  const name = (what: string) => `X-${serviceName}-Webhook-${what}`
  return {
    id: name("Id"),
    timestamp: name("Timestamp"),
    signature: name("Signature"),
    previous: name("Signature-Previous")
  }
}

/** The delivery id in the headers. */
export const deliveryIdIn = (serviceName: string, headers: string): string | undefined =>
  readHeaders(headers).get(headerNames(serviceName).id.toLowerCase())?.[0]

/** Finds what matches and which part differs. Needs only Web Crypto. */
export const checkSignature = async (received: Received): Promise<Report> => {
  const { atMillis, serviceName } = received
  const names = headerNames(serviceName)
  const headers = readHeaders(received.headers)
  const valuesOf = (name: string) => (headers.get(name.toLowerCase()) ?? []).filter(Boolean)
  const findings: Array<Finding> = [names.id, names.timestamp, names.signature].flatMap((name) => {
    const count = valuesOf(name).length
    if (count === 1) return []
    return [{ part: "header", text: count === 0 ? words.missing(name) : words.repeated(name) }]
  })
  const [id] = valuesOf(names.id)
  const [timestamp] = valuesOf(names.timestamp)
  const [signature] = valuesOf(names.signature)
  if (timestamp !== undefined) findings.push(...timeFindings(timestamp, atMillis))
  if (signature !== undefined) findings.push(...formFindings(signature))
  findings.push(...bodyFindings(received))
  if (id === undefined || timestamp === undefined || signature === undefined) {
    return { isValid: false, findings }
  }
  const [previous] = valuesOf(names.previous)
  const start = `${id}.${timestamp}.`
  const found = await signedBy(received, start, [signature, previous])
  return {
    isValid: findings.every(({ part }) => part === "body") && found.isValid,
    findings: found.isValid
      ? [...findings.filter(({ part }) => part !== "body"), ...found.findings]
      : [...findings, ...found.findings]
  }
}

const timeFindings = (timestamp: string, atMillis: number): ReadonlyArray<Finding> => {
  if (!/^(?:0|[1-9]\d{0,14})$/u.test(timestamp)) return [{ part: "time", text: words.noTime }]
  const seconds = Math.round(atMillis / 1000 - Number(timestamp))
  return Math.abs(seconds) <= skewSecondsMax ? [] : [{ part: "time", text: words.skew(seconds) }]
}

const formFindings = (signature: string): ReadonlyArray<Finding> => {
  if (!signature.startsWith("v1=")) return [{ part: "signature", text: words.prefix }]
  return /^v1=[0-9a-f]{64}$/u.test(signature) ? [] : [{ part: "signature", text: words.form }]
}

const bodyFindings = ({ body, sent }: Received): ReadonlyArray<Finding> => {
  if (sent === undefined || sent === body) return []
  const shorter = Math.min(sent.length, body.length)
  let at = 0
  while (at < shorter && sent[at] === body[at]) at += 1
  return [{ part: "body", text: words.notSent(at + 1, body.length, sent.length) }]
}

/** Other forms of the body and the secret, with what each would mean. */
const suspects = ({ body, secret, sent }: Received) => {
  const secrets: ReadonlyArray<readonly [string, Finding | undefined]> = [
    [secret, undefined],
    [secret.trim(), { part: "secret", text: words.spaces }],
    [`whsec_${secret.trim()}`, { part: "secret", text: words.noPrefix }]
  ]
  const bodies: ReadonlyArray<readonly [string, Finding | undefined]> = [
    [body, undefined],
    ...(sent === undefined ? [] : [[sent, { part: "body", text: words.sentVerifies }] as const]),
    [body.replace(/\r?\n$/u, ""), { part: "body", text: words.lineEnd }],
    [`${body}\n`, { part: "body", text: words.lineEnd }],
    [compact(body), { part: "body", text: words.rewritten }]
  ]
  return secrets.flatMap(([key, why]) =>
    bodies.map(([text, what]) => ({
      key,
      text,
      findings: [why, what].filter((it) => it !== undefined)
    }))
  )
}

const compact = (body: string): string => JSON.stringify(parseJson(body)) ?? body

const signedBy = async (
  received: Received,
  start: string,
  [signature, previous]: readonly [string, string | undefined]
): Promise<Report> => {
  for (const { findings, key, text } of suspects(received)) {
    // Web Crypto does not accept an empty key
    if (key === "") continue
    // oxlint-disable-next-line no-await-in-loop -- a few, and the first nearly always decides
    const expected = await signatureOf(key, start + text)
    if (expected === signature) return { isValid: findings.length === 0, findings }
    if (expected === previous) {
      const isOld: Finding = { part: "secret", text: words.byPrevious }
      return { isValid: findings.length === 0, findings: [...findings, isOld] }
    }
  }
  return { isValid: false, findings: [{ part: "signature", text: words.otherSecret }] }
}
