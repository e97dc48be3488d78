import { Effect } from "effect"
import { HttpMethod, HttpRouter, HttpServerRequest } from "effect/http"
import type { HttpServerResponse } from "effect/http"
import { Problem } from "../../domain/Problem.ts"

type Handler<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

/**
 * The routes of one path with a handler per method. HEAD uses the handler of GET; other HTTP methods get a 405 with
 * `Allow`.
 */
export const resource = <E, R>(
  path: `/${string}`,
  methods: { readonly [method in "GET" | "POST" | "DELETE"]?: Handler<E, R> }
) => {
  const handlers = new Map<string, Handler<E, R>>(Object.entries(methods))
  const get = methods.GET
  if (get !== undefined) handlers.set("HEAD", get)
  const allow = [...handlers.keys()]
  const handled = Effect.flatMap(
    HttpServerRequest.HttpServerRequest,
    (request): Handler<E | Problem, R> =>
      handlers.get(request.method) ??
      Effect.fail(
        new Problem({ code: 2007, detail: `${request.method} is not allowed here`, allow })
      )
  )
  return everyMethod(path, handled)
}

/**
 * The routes of one path for all HTTP methods. With `*` the router would register all 35 methods that Node parses,
 * which takes a quarter of the CPU of a start (`testGateway.test.ts`).
 */
export const everyMethod = <E, R>(path: `/${string}`, handler: Handler<E, R>) =>
  Array.from(HttpMethod.all, (method) => HttpRouter.route(method, path, handler))
