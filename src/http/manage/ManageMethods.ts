import { Effect } from "effect"
import { HttpMethod, HttpRouter, HttpServerRequest } from "effect/http"
import { HttpApi } from "effect/http-api"
import { Api } from "../../contract/Api.ts"
import { Problem } from "../../domain/Problem.ts"

/**
 * Responds with 405 and `Allow` to a method that a management path does not support; `HttpApi` alone would respond with
 * 404. The paths come from the declared API. docs/reference/errors.md#headers-of-errors
 */
export const layer = HttpRouter.use((router) =>
  router.addAll(
    [...methodsOfPaths()].flatMap(([path, allow]) =>
      [...HttpMethod.all]
        .filter((method) => !allow.has(method))
        .map((method) => HttpRouter.route(method, path, notAllowed([...allow])))
    )
  )
)

const methodsOfPaths = (): ReadonlyMap<`/${string}`, ReadonlySet<string>> => {
  const methods = new Map<`/${string}`, Set<string>>()
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => {
      const path = `/${endpoint.path.slice(1)}` as const
      const allow = (methods.get(path) ?? new Set()).add(endpoint.method)
      // The router serves HEAD with the handler of GET
      methods.set(path, endpoint.method === "GET" ? allow.add("HEAD") : allow)
    }
  })
  return methods
}

const notAllowed = (allow: ReadonlyArray<string>) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method }) =>
    Effect.fail(new Problem({ code: 2007, detail: `${method} is not allowed here`, allow }))
  )
