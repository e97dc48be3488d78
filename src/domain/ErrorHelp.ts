import type { ProblemCode } from "./Problem.ts"

/** Whether the same request, or the same task, may be sent again by a program. */
export type Retry =
  /** Not before something else has changed. */
  | "no"
  /** After `Retry-After`, else with growing waits; a create with the same `Idempotency-Key`. */
  | "later"
  /** The task exists, and a second request would buy another one: GET it. */
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
    "The key is not of the service's form, its checksum is wrong, or nobody has it.",
    "Check that the key was copied whole; make a new one if it is lost."
  ),
  1003: help(
    "The key was valid once and has expired or was revoked. With status 403 its secret was replaced by a rotation, still works for a grace, and may not change keys, sessions or endpoints.",
    "Use the new secret of the key, or make a new key and replace this one."
  ),
  1004: help(
    "The key is valid, and may not be used for this endpoint.",
    "Use a key with the scope that the detail names, or call the endpoint as the user it belongs to."
  ),
  1005: help(
    "E-mail address and password do not belong together, the user is disabled, the link was used or is too old, or the token is nobody's.",
    "Check what was typed, or ask the operator for a new sign-in link."
  ),
  1006: help(
    "The session has expired, was revoked, or ended with its key, its password or its user.",
    "Sign in again."
  ),
  1007: help(
    "A request with a session's cookie came from a page of another site, or a write did not say where it came from.",
    "Send it from a page of the gateway's own address (BASE_URL), or use an API key."
  ),
  1101: help(
    "The available balance (settled minus held) is lower than the price. No task was made.",
    "Top up the wallet, or wait until running tasks have ended and their holds are released."
  ),
  1102: help(
    "The API key has a spend limit, and what is left of it (remaining) is lower than the price. Nothing was made.",
    "Wait until the limit resets, as Retry-After says where there is one, or have the limit of the key raised.",
    "later"
  ),
  1103: help(
    "The price, or what would be held for the call, is higher than the X-Service-Max-Cost of the request. Nothing was made.",
    "Ask for less, such as fewer output tokens, or send a higher maximum."
  ),
  1201: help(
    "The key, or all keys of its user together, sent as many requests as they may in a minute; or an endpoint was sent as many test events as it may in a day; or the user has left too many streams that are still read for their usage figures.",
    "Wait as long as Retry-After says. RateLimit-Remaining tells in advance how many are left.",
    "later"
  ),
  1202: help(
    "The key, or all keys of its user together, have as many unfinished tasks as they may, or the inputs that are kept for the user have as many bytes as they may. No task was made.",
    "Wait until one has ended (Retry-After is a guess), or cancel one. Media by URL count only when the task runs.",
    "later"
  ),
  1203: help(
    "The vendor has said that its rate for this model is used up. Other models are not concerned.",
    "Wait as long as Retry-After says, or call another model.",
    "later"
  ),
  2001: help(
    "One parameter or several are missing, unknown, of the wrong type or out of range.",
    "Correct every fault listed in errors; each names its place as a JSON pointer."
  ),
  2002: help(
    "The body is empty, is not JSON, is not valid UTF-8, or is too complex.",
    "Send one JSON value, encoded in UTF-8. Of a large body split what is too complex."
  ),
  2003: help(
    "The Content-Type of the body is not JSON.",
    "Send the body as JSON with Content-Type: application/json."
  ),
  2004: help(
    "The body is larger than the service takes.",
    "Send media as URLs instead of Base64, or smaller media."
  ),
  2005: help(
    "There is no such task or resource, or it belongs to somebody else.",
    "Check the id, and that vendor and model in the path are those of the create request."
  ),
  2006: help(
    "The path names a vendor, model or route that the service does not have.",
    "GET /manage/v1/models lists every model with its path and price."
  ),
  2007: help("The path exists, the method does not.", "Use a method that the Allow header names."),
  2008: help(
    "The Idempotency-Key was used within 24 hours for a request with another body or path.",
    "Use a new key for every new request, and the same key for a repeat alone."
  ),
  2010: help(
    "The request does not fit the state: the task has ended, or a limit of the account is reached.",
    "Read the resource again and decide anew."
  ),
  2011: help(
    "The webhook URL is not https, is too long, holds credentials, or leads to a private address.",
    "Register a public https URL of at most 2048 characters."
  ),
  2012: help(
    "The signed link has expired, or was changed.",
    "Get the task again for a fresh link, or keep a copy of results: links are valid for 24 hours."
  ),
  2013: help(
    "The Range header asks for bytes that the artifact does not have.",
    "Ask for a range within the size that Content-Range names."
  ),
  2014: help(
    "What came over the connection is not valid HTTP; the connection was closed.",
    "Use an HTTP client library, and check proxies on the way."
  ),
  2015: help(
    "The request did not arrive in time; the connection was closed.",
    "Send it again over a faster connection, or with smaller media by URL instead of Base64.",
    "later"
  ),
  2016: help(
    "All headers together are larger than 16 KiB; the connection was closed.",
    "Send fewer or shorter headers, such as cookies that are not needed."
  ),
  2017: help(
    "A request in OpenAI's shape waits for its task, and the task had not ended in time, or its result could not be read. The task is there and goes on.",
    "Do not send the request again without its Idempotency-Key: GET the task at the URL that the problem names, or ask for Prefer: respond-async.",
    "get"
  ),
  2018: help(
    "The task behind a request in OpenAI's shape failed because of its content, parameters or media. Nothing was charged.",
    "Change what the detail names; the task has the whole error."
  ),
  2019: help(
    "The task behind a request in OpenAI's shape failed. Nothing was charged.",
    "Read the error of the task, and send the request again if its help says so."
  ),
  2020: help(
    "The request is a WebSocket handshake, and no route of the service has a WebSocket.",
    "Send the request over HTTP/1.1, and read streams as server-sent events."
  ),
  5000: help(
    "Something failed inside the service.",
    "Try again; if it stays, report the Traceparent of the answer.",
    "later"
  ),
  5002: help(
    "The upstream vendor could not be reached or answered nonsense.",
    "Try again shortly with growing waits.",
    "later"
  ),
  5003: help(
    "The service is starting or overloaded, its store is away, or the vendor is not configured.",
    "Try again as Retry-After says; create requests with an Idempotency-Key are safe to repeat.",
    "later"
  ),
  5004: help(
    "The upstream vendor did not answer in time.",
    "Try again with growing waits, or ask for less.",
    "later"
  )
}

/** `task_info.error` of a failed task; its hold is released. docs/reference/errors.md#task-error-codes */
export const taskErrorHelp = {
  400: help(
    "The upstream refused a parameter, or input media break a rule of the model.",
    "Correct what the detail names and create the task again."
  ),
  3001: help(
    "The upstream refused the content of the prompt or of the media.",
    "Change the prompt or the media."
  ),
  3002: help(
    "The upstream was too busy for this job, also after several tries.",
    "Create the task again later.",
    "later"
  ),
  3003: help(
    "The upstream gave the job up for its time.",
    "Create the task again, or ask for less.",
    "later"
  ),
  3004: help(
    "The result was lost, or it is not known whether the upstream took the job; it was not bought twice.",
    "Create the task again.",
    "later"
  ),
  3005: help(
    "The upstream failed while it ran the job.",
    "Create the task again; if it stays, report the task id.",
    "later"
  ),
  4002: help(
    "Input media could not be downloaded.",
    "Check that the URL is public, answers within 30 seconds and leads to no private address."
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
