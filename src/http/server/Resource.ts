import type { Effect } from "effect"
import { HttpMethod, HttpRouter } from "effect/http"
import type { HttpServerResponse } from "effect/http"

type Handler<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

/** The routes of one path. HEAD uses the handler of GET. `AllowedMethods` responds to other methods. */
export const resource = <E, R>(
  path: `/${string}`,
  {
    DELETE: remove,
    GET: get,
    POST: post
  }: { readonly [method in "GET" | "POST" | "DELETE"]?: Handler<E, R> }
) => [
  ...(get === undefined
    ? []
    : [HttpRouter.route("GET", path, get), HttpRouter.route("HEAD", path, get)]),
  ...(post === undefined ? [] : [HttpRouter.route("POST", path, post)]),
  ...(remove === undefined ? [] : [HttpRouter.route("DELETE", path, remove)])
]

/**
 * The routes of one path for all HTTP methods. With `*` the router would register all 35 methods that Node parses,
 * which takes a quarter of the CPU of a start (`testGateway.test.ts`).
 */
export const everyMethod = <E, R>(path: `/${string}`, handler: Handler<E, R>) =>
  Array.from(HttpMethod.all, (method) => HttpRouter.route(method, path, handler))
