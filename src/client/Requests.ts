import { keepsKeys, newIdempotencyKey } from "./Keys.ts"
import type { Operations, Page } from "./schema.ts"
import { notTheGateway } from "./Task.ts"
import type { Reply, RequestOptions, Transport } from "./Transport.ts"

/** The typed routes of the management API, such as `GET /manage/v1/wallet`. */
export type Route = keyof Operations

export type ResponseOf<R extends Route> = Operations[R]["response"]

/** Options of a POST for which the gateway recognizes repeats. */
export interface WriteOptions extends RequestOptions {
  /** 1 to 255 characters; default: a new UUID for each call. docs/reference/tasks.md#idempotency */
  readonly idempotencyKey?: string | undefined
}

interface AnyOptions extends WriteOptions {
  /** Values for each `{name}` in the route. */
  readonly path?: Readonly<Record<string, string>> | undefined
  readonly query?: Readonly<Record<string, unknown>> | undefined
  /** Sent as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>> | undefined
}

type OptionsOf<R extends Route> = Omit<Operations[R], "response"> &
  WriteOptions & { readonly headers?: Readonly<Record<string, string>> | undefined }

/** A route of the OpenAPI document, or any other, such as `POST /v1/embeddings`. */
export type AnyRoute = Route | (`${"GET" | "POST" | "PATCH" | "DELETE"} /${string}` & {})

export type ArgumentsOf<R extends AnyRoute> = R extends Route
  ? object extends OptionsOf<R>
    ? [options?: OptionsOf<R>]
    : [options: OptionsOf<R>]
  : [options?: AnyOptions]

export type AnswerOf<R extends AnyRoute> = R extends Route ? ResponseOf<R> : unknown

/** Routes that return lists. */
export type ListRoute = {
  [R in Route]: Operations[R] extends { readonly response: Page<unknown> } ? R : never
}[Route]

export type ItemOf<R extends ListRoute> = Operations[R] extends {
  readonly response: Page<infer Item>
}
  ? Item
  : never

/** The filters of a list. `limit` is the page size, 1 to 100. docs/reference/http.md#lists */
export type FilterOf<R extends ListRoute> = Operations[R] extends { readonly query?: infer Query }
  ? NonNullable<Query>
  : never

/** The items of all pages of a list, newest first: `for await (const task of list)`. */
export interface List<Item> extends AsyncIterable<Item> {
  /** Reads one page: the first, or the one after the page that returned this `next_cursor`. */
  readonly page: (cursor?: string) => Promise<Page<Item>>
  readonly pages: () => AsyncIterable<Page<Item>>
}

/** `metadata: { order: "17" }` becomes `metadata[order]=17`. */
export const queryText = (query: Readonly<Record<string, unknown>> = {}): string => {
  const pairs = Object.entries(query).flatMap(([name, value]): Array<[string, string]> => {
    if (value === undefined || value === null) return []
    if (typeof value !== "object") return [[name, String(value)]]
    return Object.entries(value).map(([key, one]) => [`${name}[${key}]`, String(one)])
  })
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`
}

const isPage = (body: unknown): body is Page<unknown> =>
  typeof body === "object" && body !== null && "data" in body && "next_cursor" in body

/** Sends the requests of a client, by route. */
export class Requests {
  readonly transport: Transport

  constructor(transport: Transport) {
    this.transport = transport
  }

  request<R extends AnyRoute>(route: R, ...options: ArgumentsOf<R>): Promise<AnswerOf<R>>
  async request(route: string, options: AnyOptions = {}): Promise<unknown> {
    return (await this.send(route, options)).body
  }

  async send(route: string, options: AnyOptions): Promise<Reply> {
    const { body, headers, path: values = {}, query, ...others } = options
    const [method = "", template = ""] = route.split(" ")
    const path =
      template.replaceAll(/\{(\w+)\}/gu, (_, name: string) =>
        encodeURIComponent(values[name] ?? "")
      ) + queryText(query)
    const isKept = method === "POST" && keepsKeys(path)
    const idempotencyKey = others.idempotencyKey ?? (isKept ? newIdempotencyKey() : undefined)
    return this.transport.send({
      ...others,
      method,
      path,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      idempotencyKey,
      isRepeatable: method !== "POST" || isKept
    })
  }

  list<R extends ListRoute>(
    route: R,
    filter?: FilterOf<R>,
    options?: RequestOptions & { readonly path?: Readonly<Record<string, string>> }
  ): List<ItemOf<R>>
  list(
    route: string,
    filter: Readonly<Record<string, unknown>> = {},
    options: AnyOptions = {}
  ): List<unknown> {
    const page = async (cursor?: string): Promise<Page<unknown>> => {
      const query = cursor === undefined ? filter : { ...filter, cursor }
      const { body, status } = await this.send(route, { ...options, query })
      if (!isPage(body)) throw notTheGateway(status)
      return body
    }
    async function* pages() {
      for (let cursor: string | null | undefined; cursor !== null;) {
        const one: Page<unknown> = await page(cursor)
        yield one
        cursor = one.next_cursor
      }
    }
    return {
      page,
      pages,
      async *[Symbol.asyncIterator]() {
        for await (const { data } of pages()) yield* data
      }
    }
  }
}
