import { Effect } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import type { HttpServerResponse } from "effect/http"
import { Problem } from "../../domain/Problem.ts"

type Handler<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

/**
 * One path with the handlers of its methods. HEAD runs the handler of GET;
 * other methods get 405 with `Allow`.
 */
export const resource = <E, R>(
  path: `/${string}`,
  methods: { readonly [method in "GET" | "POST" | "DELETE"]?: Handler<E, R> }
) => {
  const allow = Object.keys(methods)
  const handlers = new Map<string, Handler<E, R>>(Object.entries(methods))
  const get = methods.GET
  if (get !== undefined) handlers.set("HEAD", get)
  return HttpRouter.route(
    "*",
    path,
    Effect.flatMap(
      HttpServerRequest.HttpServerRequest,
      (request): Handler<E | Problem, R> =>
        handlers.get(request.method) ??
        Effect.fail(
          new Problem({ code: 2007, detail: `${request.method} is not allowed here`, allow })
        )
    )
  )
}
