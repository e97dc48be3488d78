/** The layers of the gateway, for other compositions. The layers of tests are in `generation-gateway/testing`. */
export * as Gateway from "./Gateway.ts"
export { AppConfig, ConfigFault } from "./config/Config.ts"
