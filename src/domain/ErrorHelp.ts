import type { ProblemCode } from "./Problem.ts"

/** Whether a program may send the same request, or the same task, again. */
export type Retry =
  /** Only after something else has changed. */
  | "no"
  /** After `Retry-After`, or else with exponential backoff. A create must keep the same `Idempotency-Key`. */
  | "later"
  /** No: the task exists, and a second request would buy another one. GET it instead. */
  | "get"

/** What a code means and what a client can do about it. Shown by `/docs/errors` and docs/errors.md. */
export interface ErrorHelp {
  readonly meaning: string
  readonly remedy: string
  readonly retry: Retry
}

const help = (meaning: string, remedy: string, retry: Retry = "no"): ErrorHelp => ({
  meaning,
  remedy,
  retry
})

/** docs/reference/errors.md#problem-codes */
export const problemHelp: Record<ProblemCode, ErrorHelp> = {
  1001: help(
    "The request has no Authorization header.",
    "Send the API key as Authorization: Bearer <API_KEY>."
  ),
  1002: help(
    "The key is malformed, its checksum is wrong, or it does not exist.",
    "Check that the key was copied completely; create a new one if it is lost."
  ),
  1003: help(
    "The key has expired or was revoked. With status 403, a rotation replaced its secret: the old secret works until its grace period ends, but may not change keys, sessions or endpoints.",
    "Use the key's new secret, or replace the key with a new one."
  ),
  1004: help(
    "The key is valid but may not be used for this endpoint or this model.",
    "As the detail says, use a key with the scope, use a key that allows the model, or call the endpoint as the user it belongs to."
  ),
  1005: help(
    "The e-mail address and password do not match, the user is disabled, the link was used or has expired, or the token is unknown.",
    "Check your input, or ask the operator for a new sign-in link."
  ),
  1006: help(
    "The session has expired or was revoked, or its key, password or user was changed or removed.",
    "Sign in again."
  ),
  1007: help(
    "A request with a session cookie came from another site, or a write did not state its origin.",
    "Send it from a page at the gateway's own address (BASE_URL), or use an API key."
  ),
  1101: help(
    "The available balance (settled minus held) is lower than the price, or than what a call holds until its cost is known. Nothing was created.",
    "Top up the wallet, limit the output of a call (max_tokens), or wait until running tasks have ended and their holds are released. A stream that ended with this code was charged for what it had sent."
  ),
  1102: help(
    "The price is higher than the remaining spend limit of the API key (remaining). Nothing was created.",
    "Wait until the limit resets (see Retry-After, if present), or have the key's limit raised. A stream that ended with this code was charged for what it had sent.",
    "later"
  ),
  1103: help(
    "The price, or the most that the call can cost, is higher than the request's X-Service-Max-Cost. Nothing was created.",
    "Ask for less, such as fewer output tokens, or send a higher maximum."
  ),
  1201: help(
    "Too many requests of the key or its user in a minute, attempts to sign in, test events in a day, open streams and waits, or abandoned streams that are still being read for their usage figures.",
    "Wait as long as Retry-After says. RateLimit-Remaining shows in advance how many requests are left.",
    "later"
  ),
  1202: help(
    "Too many unfinished tasks of the key or its user, bytes of stored inputs or files, or batches and uploads at once. Nothing was created.",
    "As the detail says: wait until a task has ended (Retry-After is an estimate) or cancel one, send media by URL, delete files, or send one batch after another.",
    "later"
  ),
  1203: help(
    "The vendor has rate-limited this model. Other models are not affected.",
    "Wait as long as Retry-After says, or call another model.",
    "later"
  ),
  2001: help(
    "One or more parameters are missing, unknown, of the wrong type or out of range.",
    "Correct every fault listed in errors; each has its location as a JSON pointer."
  ),
  2002: help(
    "The body is empty, is not JSON, is not valid UTF-8, or is too complex.",
    "Send one JSON value, encoded in UTF-8. Split a body that is too complex."
  ),
  2003: help(
    "The Content-Type of the body is not JSON.",
    "Send the body as JSON with Content-Type: application/json."
  ),
  2004: help(
    "The body is larger than the service accepts.",
    "Send media as URLs instead of Base64, or send smaller media."
  ),
  2005: help(
    "The task or resource does not exist or belongs to another user.",
    "Check the id, and check that the vendor and model in the path match the create request."
  ),
  2006: help(
    "The path names a vendor, model or route that the service does not have.",
    "Use the route that the detail names, if it names one. GET /manage/v1/models lists every model with its path and price."
  ),
  2007: help("The path does not support this method.", "Use a method listed in the Allow header."),
  2008: help(
    "The Idempotency-Key was used within 24 hours for a request with another body or path.",
    "Use a new key for every new request, and reuse a key only to repeat a request."
  ),
  2010: help(
    "The request conflicts with the current state: the task has ended, or a limit of the account is reached.",
    "Read the resource again before you decide what to do."
  ),
  2011: help(
    "The webhook URL is not https, is too long, contains credentials, or resolves to a private address.",
    "Register a public https URL of at most 2048 characters."
  ),
  2012: help(
    "The signed link has expired or was altered.",
    "Get the task again for a new link, or store a copy of the results: links are valid for 24 hours."
  ),
  2013: help(
    "The Range header requests bytes beyond the end of the artifact.",
    "Request a range within the size given by Content-Range."
  ),
  2014: help(
    "The data received is not valid HTTP; the connection was closed.",
    "Use an HTTP client library, and check any proxies in between."
  ),
  2015: help(
    "The request did not arrive in time; the connection was closed.",
    "Send it again over a faster connection, with smaller media, or with media as URLs instead of Base64.",
    "later"
  ),
  2016: help(
    "All headers together are larger than 16 KiB; the connection was closed.",
    "Send fewer or shorter headers, such as cookies that are not needed."
  ),
  2017: help(
    "A request in OpenAI's shape waits for its task, but the task did not end in time, or its result could not be read. The task still exists and continues.",
    "Do not send the request again without its Idempotency-Key: GET the task at the URL in the problem, or send Prefer: respond-async.",
    "get"
  ),
  2018: help(
    "The task behind a request in OpenAI's shape failed because of its content, parameters or media. Nothing was charged.",
    "Correct what the detail describes; the task has the full error."
  ),
  2019: help(
    "The task behind a request in OpenAI's shape failed. Nothing was charged.",
    "Read the error of the task, and send the request again if its help says so."
  ),
  2020: help(
    "The request is a WebSocket handshake, and no route of the service supports WebSockets.",
    "Send the request over HTTP/1.1, and read streams as server-sent events."
  ),
  5000: help(
    "Something failed inside the service.",
    "Try again; if the error persists, report the Traceparent header of the response.",
    "later"
  ),
  5002: help(
    "The upstream vendor could not be reached or sent an invalid response.",
    "Try again soon, with exponential backoff.",
    "later"
  ),
  5003: help(
    "The service is starting, stopping or overloaded, its store is unavailable, or the vendor refuses the service's account.",
    "Try again as Retry-After says; create requests with an Idempotency-Key are safe to repeat.",
    "later"
  ),
  5004: help(
    "The upstream vendor did not respond in time.",
    "Try again with exponential backoff, or ask for less.",
    "later"
  )
}

/** `task_info.error` of a failed task; its hold is released. docs/reference/errors.md#task-error-codes */
export const taskErrorHelp = {
  400: help(
    "The upstream refused a parameter, or input media violate a rule of the model.",
    "Correct what the detail describes and create the task again."
  ),
  3001: help(
    "The upstream refused the content of the prompt or of the media.",
    "Change the prompt or the media."
  ),
  3002: help(
    "The upstream was too busy for this job, even after several tries.",
    "Create the task again later.",
    "later"
  ),
  3003: help(
    "The upstream gave up the job because it took too long.",
    "Create the task again, or ask for less.",
    "later"
  ),
  3004: help(
    "The result was lost, or it is unknown whether the upstream accepted the job; it was not bought twice.",
    "Create the task again.",
    "later"
  ),
  3005: help(
    "The upstream failed while running the job.",
    "Create the task again; if the error persists, report the task id.",
    "later"
  ),
  4002: help(
    "Input media could not be downloaded.",
    "Check that the URL is public, responds within 30 seconds and does not resolve to a private address."
  ),
  4004: help("The task was cancelled by its owner.", "Nothing to do: the hold was released."),
  4005: help(
    "The task did not end before its deadline.",
    "Create the task again, or ask the operator for a longer TASK_DEADLINE.",
    "later"
  ),
  4008: help(
    "The service's own account at the vendor is misconfigured or unpaid, or the vendor no longer offers the model.",
    "Wait for the operator, who has been notified."
  )
} as const satisfies Record<number, ErrorHelp>

/** `task_info.error.title`. */
export const taskErrorTitles: Readonly<Record<keyof typeof taskErrorHelp, string>> = {
  400: "Invalid Parameter",
  3001: "Content Error",
  3002: "Upstream Rate Limited",
  3003: "Upstream Timeout",
  3004: "Result Unavailable",
  3005: "Upstream Provider Error",
  4002: "Input Media Error",
  4004: "Cancelled",
  4005: "Deadline Passed",
  4008: "Service Configuration Error"
}
