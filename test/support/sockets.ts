import { Context, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import * as Routes from "../../src/http/Routes.ts"
import { Listener } from "../../src/http/server/listener/Listener.ts"
import { layerGateway } from "./gateway.ts"
import type { GatewayOptions } from "./gateway.ts"

/** The address of a gateway that listens on a port of 127.0.0.1. */
export class Listening extends Context.Service<Listening, { readonly url: string }>()(
  "test/Listening"
) {
  static readonly layer = Layer.effect(
    Listening,
    Effect.map(HttpServer.HttpServer, ({ address }) => {
      if (address._tag === "UnixPathAddress") throw new Error("it listens elsewhere")
      return { url: `http://127.0.0.1:${address.port}` }
    })
  )
}

/** The whole gateway behind a real socket, for tests that need a connection. */
export const layerListening = (options: GatewayOptions = {}) =>
  Listening.layer.pipe(
    Layer.provideMerge(Routes.serve),
    Layer.provideMerge(Layer.orDie(Listener.listen({ host: "127.0.0.1", port: 0 }))),
    Layer.provideMerge(layerGateway(options))
  )
