#!/usr/bin/env node
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { TeardownOfProcess } from "./commands/serve.ts"
import { run, teardown } from "./Program.ts"

let end = teardown

NodeRuntime.runMain(
  run(globalThis.process.argv.slice(2)).pipe(
    Effect.provideService(TeardownOfProcess, (ofService) => {
      end = ofService
    }),
    Effect.provide(Layer.merge(NodeServices.layer, FetchHttpClient.layer))
  ),
  { disableErrorReporting: true, teardown: (exit, onExit) => end(exit, onExit) }
)
