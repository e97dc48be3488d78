import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { service, teardown } from "./cli/Service.ts"

NodeRuntime.runMain(service, { disableErrorReporting: true, teardown })
