/**
 * Cleans vendors' text for clients and logs: removes keys, account identities, signed URLs, internal addresses and
 * control characters. All quantifiers are bounded, so the time grows only with the length.
 * docs/reference/errors.md#vendor-messages, ADR 0074.
 */

export const hiddenText = "[hidden]"
const hidden = hiddenText

/** Characters of a value. Brackets end it, so that `[hidden]` is not a value itself. */
const value = String.raw`[^\s"'&,;<>()[\]{}\\]`
/** A digit, or more characters than any word has. */
const notAWord = String.raw`(?=${value}{0,80}\d|${value}{24})`

const secretName =
  "(?:key|token|secret|signature|sig|passw(?:or)?d|credentials?|authorization|cookie)(?:[-_ ]?id)?"

const accountName =
  "(?:account|organi[sz]ation|org|project|workspace|tenant|customer|consumer|subscription|billing|user|uid|ram)s?"

const flags = "giu"
const hide = (pattern: string, by = hidden): readonly [RegExp, string] => [
  new RegExp(pattern, flags),
  by
]

const secrets: ReadonlyArray<readonly [RegExp, string]> = [
  // Private keys in PEM form
  hide(String.raw`-----BEGIN [A-Z ]{1,40}-----[^-]{0,8000}(?:-----END [A-Z ]{1,40}-----)?`),
  // JSON Web Tokens
  hide(String.raw`\beyJ[\w-]{6,2000}(?:\.[\w-]{1,4000}){0,4}`),
  // Authorization: Bearer …, Key …
  hide(String.raw`\b(?:bearer|basic|digest|key|token)\s{1,3}${notAWord}${value}{8,}`),
  // key=…; token: …; API key provided: …
  hide(String.raw`(${secretName}["']?\s{0,3}=\s{0,3}["']?)${value}+`, `$1${hidden}`),
  hide(
    String.raw`(${secretName}["']?(?:\s\w{1,12}){0,2}\s{0,3}:\s{0,3}["']?(?:(?:bearer|basic|key|token)\s)?)${notAWord}${value}{6,}`,
    `$1${hidden}`
  ),
  // Keys by their prefixes: OpenAI, Anthropic, DashScope, Replicate, fal, Google, Alibaba, AWS, others
  hide(String.raw`\b(?:sk|rk|r8|hf|gsk|xai|nvapi|sess|whsec|GOCSPX)[-_][\w*.-]{4,}`),
  hide(String.raw`\bgh[opsur]_\w{10,}|\bgithub_pat_\w{10,}|\bxox[abeoprs]-[\w-]{8,}`),
  hide(String.raw`\b(?:api|key|fal|pk|ak|ek|user|team|llm|cus)[-_](?=[\w*-]{0,80}\d)[\w*-]{6,}`),
  hide(String.raw`\bAIza[\w-]{16,}|\bAQ\.[\w-]{16,}|\bya29\.[\w.-]{8,}|\b1//0[\w-]{16,}`),
  hide(String.raw`\bLTAI\w{8,}|\bSTS\.\w{8,}|\bA(?:KIA|SIA)[A-Z0-9]{12,}`),
  hide(String.raw`\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}:[0-9a-z]{12,}`),
  // Signatures and keys without a known prefix
  hide(String.raw`(?<![\w-])[0-9a-f]{32,}(?![\w-])`),
  hide(
    String.raw`(?<![\w+/])(?=[\w+/-]{0,80}\d)(?=[\w+/-]{0,80}[a-z])[\w+-]{40,}(?:/[\w+-]{0,200}){0,20}={0,2}`
  )
]

const identities: ReadonlyArray<readonly [RegExp, string]> = [
  hide(String.raw`\b(?:org|proj|ws|wrkspc|acct)[-_][\w-]{3,}`),
  hide(String.raw`\b(?:arn|acs|urn):[\w:/*.@-]{8,}`),
  hide(
    String.raw`(\b${accountName}(?:[-_ ]?(?:id|number|no|name|uid))?["']?[\s:=/#'"(]{1,4})(?=[\w-]{0,40}\d)[\w-]{4,}`,
    `$1${hidden}`
  ),
  hide(String.raw`(?<![\w.-])\d{12,}(?!\w|\.\d)|(?<![\w-])\d{4}-\d{4}-\d{4}(?![\w-])`),
  hide(String.raw`[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}\b`)
]

const addresses: ReadonlyArray<readonly [RegExp, string]> = [
  hide(String.raw`(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?!\w|\.\d)`),
  hide(
    String.raw`\[?(?<![\w:.])(?:(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?::(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?)(?:%\w{1,16})?(?![\w:])\]?(?::\d{1,5})?`
  ),
  hide(
    String.raw`(?<![\w.-])(?:[\w-]{1,63}\.){0,8}(?:localhost|[\w-]{1,63}\.(?:internal|local|localdomain|lan|intranet|intra|corp|home|svc|consul|private))(?:\.[\w-]{1,63}){0,4}(?::\d{1,5})?(?![\w-])`
  )
]

/** Whether a host name must be hidden from clients: it has no dot, or its domain is not in any public zone. */
const isInner = (host: string): boolean =>
  !host.includes(".") || addresses.some(([pattern]) => host.search(pattern) >= 0)

/** Slashes may be escaped, if the text contains JSON. */
const urls = /\b([a-z][a-z0-9+.-]{1,20}):(?:\\?\/){2}([^\s"'<>`]{1,4000})/giu

const punctuation = new Set(").,;:!]}")

/** The index after the last character that is not punctuation. */
const endOf = (text: string): number => {
  let end = text.length
  while (end > 0 && punctuation.has(text.charAt(end - 1))) end -= 1
  return end
}

/** A URL without user, query and fragment, which may contain keys and signatures. */
const plainUrl = (_: string, scheme: string, rest: string): string => {
  const end = endOf(rest)
  const [address = ""] = rest.slice(0, end).split(/[?#]/u, 1)
  const path = address.search(/[\\/]/u)
  const authority = path < 0 ? address : address.slice(0, path)
  const host = authority.slice(authority.lastIndexOf("@") + 1)
  const plain = isInner(host.replace(/:\d{0,5}$/u, ""))
    ? hidden
    : `${scheme}://${host}${path < 0 ? "" : address.slice(path)}`
  return `${plain}${rest.slice(end)}`
}

/** Characters that move the cursor, change the text direction or are invisible. */
const controls = /[\p{Cc}\u2028\u2029]/gu
const unseen = /\p{Cf}/gu

const withoutControls = (text: string): string =>
  text.toWellFormed().replaceAll(unseen, "").replaceAll(controls, " ")

const all = [...secrets, ...identities, ...addresses]

/** The text with `[hidden]` for everything that only the operator may see. */
export const hideSecrets = (text: string): string => {
  const plain = withoutControls(text).replaceAll(urls, plainUrl)
  return all.reduce((hiding, [pattern, by]) => hiding.replaceAll(pattern, by), plain)
}

/** The same in one line, truncated to `charactersMax`. */
export const sanitize = (text: string, charactersMax: number): string => {
  // Hides before truncating, because a secret at the cut must be recognized as a whole
  const line = hideSecrets(text.slice(0, 4 * charactersMax))
    .replaceAll(/\s+/gu, " ")
    .trim()
  const points = [...line]
  return points.length <= charactersMax ? line : `${points.slice(0, charactersMax - 1).join("")}…`
}
