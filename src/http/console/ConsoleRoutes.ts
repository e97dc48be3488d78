import { Context, Effect, Layer } from "effect"
import type { FileSystem, Path } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { AppConfig } from "../../config/Config.ts"
import { pages } from "../../contract/ServiceApi.ts"
import { problem } from "../../domain/Problem.ts"
import { basePathOf, isConsoleFolder, isUndecodableConsolePath } from "../server/Paths.ts"
import { pathOf } from "../server/problems/Problems.ts"
import { resource } from "../server/Resource.ts"
import { makeConsoleFiles } from "./ConsoleFiles.ts"

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'"
].join("; ")

const hardening = {
  "content-security-policy": policy,
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY"
}

/**
 * The console: the same page for all paths, which it routes itself, and files whose names change with their content.
 * docs/reference/http.md#console
 */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const { baseUrl } = yield* AppConfig
    const basePath = basePathOf(baseUrl)
    // Read at the first request, because a routes layer that waits would lose the requests that arrive meanwhile
    const consoleFiles = yield* Effect.cached(yield* withPlatform(makeConsoleFiles))
    const index = Effect.map(consoleFiles, (files) =>
      // A proxy may serve the gateway under a path prefix
      HttpServerResponse.text(files.index.replaceAll('="/console', `="${basePath}/console`), {
        contentType: "text/html; charset=utf-8",
        headers: { ...hardening, "cache-control": "no-cache" }
      })
    )
    const page = Effect.gen(function* () {
      const { url } = yield* HttpServerRequest.HttpServerRequest
      const [path = "", ...query] = url.split(/(?=\?)/u)
      if (!isConsoleFolder(path)) return yield* index
      const to = `${basePath}${path.slice(0, -1)}${query.join("")}`
      return HttpServerResponse.redirect(to, { status: 308 })
    })
    const asset = Effect.gen(function* () {
      const { name = "" } = yield* HttpRouter.params
      const { headers } = yield* HttpServerRequest.HttpServerRequest
      const found = (yield* consoleFiles).read(name, headers["accept-encoding"] ?? "")
      if (found === undefined) return yield* noFile
      const { bytes, contentType, encoding } = yield* found
      return HttpServerResponse.uint8Array(bytes, {
        contentType,
        headers: {
          ...hardening,
          "cache-control": "public, max-age=31536000, immutable",
          vary: "accept-encoding",
          ...(encoding === undefined ? {} : { "content-encoding": encoding })
        }
      })
    })
    return Layer.merge(
      undecodable,
      HttpRouter.addAll([
        // Also matches `/console`
        ...resource(pages.console.path, { GET: page }),
        ...resource(pages.consoleAsset.path, { GET: asset })
      ])
    )
  })
)

/** Gives paths that cannot be decoded, for which the router finds no route, to the console as they are written. */
const undecodable = HttpRouter.middleware(
  (httpEffect) =>
    Effect.withFiber((fiber) => {
      const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
      if (!isUndecodableConsolePath(pathOf(request))) return httpEffect
      const url = request.url.replaceAll("%", "%25")
      return Effect.provideService(
        httpEffect,
        HttpServerRequest.HttpServerRequest,
        request.modify({ url })
      )
    }),
  { global: true }
)

/** Provides the process's file system. */
const withPlatform = <A>(effect: Effect.Effect<A, never, FileSystem.FileSystem | Path.Path>) =>
  Effect.map(Effect.context<FileSystem.FileSystem | Path.Path>(), (context) =>
    Effect.provideContext(effect, context)
  )

const noFile = Effect.fail(problem(2006, "The console has no such file: load its page again"))
