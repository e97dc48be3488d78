import { mayBeTwice, operatorToken } from "./clients.ts"
import type { Clients } from "./clients.ts"
import type { Receivers } from "./receivers.ts"

const events = ["task.created", "task.succeeded", "task.failed", "balance.low"]

/** An API key, whose secret is replaced by each rotation. */
export interface Key {
  readonly id: string
  secret: string
  /** The secrets before, oldest first. Some clients still use them. */
  readonly old: Array<string>
}

export interface Hook {
  readonly id: string
  /** The path at the receivers. */
  readonly path: string
}

/** A user of the run with a key. */
export interface User {
  readonly id: string
  readonly name: string
  key: Key
  /** Another key with a spend limit in credits, which is raised during the run. */
  readonly limited?: Key & { limit: number }
  readonly hooks: ReadonlyArray<Hook>
  /** Whole credits paid in. */
  paid: number
  /** When the response to its deletion arrived. */
  deletedAt: number | undefined
}

export const secretsOf = ({ key, limited }: User): ReadonlyArray<string> =>
  [key, ...(limited === undefined ? [] : [limited])].flatMap(({ old, secret }) =>
    old.concat(secret)
  )

const aFile = (): FormData => {
  const form = new FormData()
  form.set("purpose", "batch")
  form.set("file", new File(["{}\n"], "requests.jsonl"))
  return form
}

/** Creates a user with credits, a key, endpoints and a file. `tag` makes the requests idempotent. */
export const makeUser = async (
  clients: Clients,
  receivers: Receivers,
  name: string,
  paid: number,
  hasLimited: boolean,
  tag: string
): Promise<User> => {
  let requests = 0
  const post = async (path: string, body: unknown, token = operatorToken) => {
    requests += 1
    const headers = { "idempotency-key": `${tag} ${requests}` }
    const made = await clients.surely("manage", `/manage/v1${path}`, { token, body, headers })
    if (made === undefined || made.status > 201)
      throw new Error(`${path}: ${made?.status} ${made?.text}`)
    return made.json
  }
  const { id } = await post("/users", { email: `${name}@example.com` })
  await post(`/users/${id}/top-ups`, { amount: String(paid) })
  const made = await post(`/users/${id}/api-keys`, { name, scopes: ["inference", "manage"] })
  const key: Key = { id: made.id, secret: made.key, old: [] }
  const hooks: Array<Hook> = []
  for (const path of [`/${name}/1`, `/${name}/2`]) {
    const url = receivers.url(path)
    const began = Date.now()
    const hook = await post("/webhook-endpoints", { url, events }, key.secret)
    if (mayBeTwice(began)) receivers.signUnseen(path)
    receivers.sign(path, hook.secret)
    hooks.push({ id: hook.id, path })
  }
  await clients.surely("manage", "/v1/files", { token: key.secret, body: aFile() })
  const user = { id, name, key, hooks, paid, deletedAt: undefined }
  if (!hasLimited) return user
  const second = await post("/api-keys", { name: "limited" }, key.secret)
  const limit = 100
  await clients.surely("manage", `/manage/v1/api-keys/${second.id}`, {
    token: key.secret,
    method: "PATCH",
    body: { spend_limit: String(limit), reset: "never" }
  })
  return { ...user, limited: { id: second.id, secret: second.key, old: [], limit } }
}
