import { Effect, Layer } from "effect"
import { FindMyWay, HttpRouter, HttpServerRequest } from "effect/http"
import { Problem } from "../../domain/Problem.ts"
import { exactPaths } from "./Paths.ts"

/**
 * A router that responds with 405 and `Allow` to a method that the path of a request does not have. Without it, that
 * request would get a 404, or the route of a sibling path with a parameter.
 * docs/reference/errors.md#headers-of-errors
 */
export const layer = Layer.effect(
  HttpRouter.HttpRouter,
  Effect.gen(function* () {
    const router = yield* HttpRouter.HttpRouter
    const { methodsAt, record } = makePaths()
    yield* router.addGlobalMiddleware((httpEffect) =>
      Effect.gen(function* () {
        const { method, url } = yield* HttpServerRequest.HttpServerRequest
        const allowed = methodsAt(url)
        if (allowed === undefined || allowed.has(method) || allowed.has("*")) {
          return yield* httpEffect
        }
        const detail = `${method} is not allowed here`
        return yield* new Problem({ code: 2007, detail, allow: [...allowed] })
      })
    )
    return HttpRouter.HttpRouter.of({
      ...router,
      add: (method, path, handler, options) => {
        record({ method, path })
        return router.add(method, path, handler, options)
      },
      addAll: (routes) => {
        for (const route of routes) record(route)
        return router.addAll(routes)
      }
    })
  })
)

/** The methods of every path, found as the router finds routes. `*` stands for all methods. */
const makePaths = () => {
  // One method for all, so that lookups compare paths only
  const anyMethod = "*"
  const paths = FindMyWay.make<Set<string>>(exactPaths)
  const methodsOf = new Map<string, Set<string>>()
  const recordAt = (path: FindMyWay.PathInput, method: string) => {
    const shape = path.replaceAll(/:\w+/gu, ":")
    const methods = methodsOf.get(shape) ?? new Set()
    if (!methodsOf.has(shape)) paths.on(anyMethod, path, methods)
    methodsOf.set(shape, methods.add(method))
    if (method === "GET") methods.add("HEAD")
  }
  return {
    record: ({ method, path }: Pick<HttpRouter.Route, "method" | "path">) => {
      recordAt(path, method)
      // The router also matches such a path without its last segment
      if (path.endsWith("/*")) recordAt(`/${path.slice(1, -2)}`, method)
    },
    methodsAt: (url: string) => paths.find(anyMethod, url)?.handler
  }
}
