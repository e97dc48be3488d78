import { HttpApi, OpenApi } from "effect/http-api"
import { bodyParseOptions } from "../../catalog/FieldFaults.ts"
import { AccountsApi } from "./AccountsApi.ts"
import { ApiKeysApi } from "./ApiKeysApi.ts"
import { CallsApi } from "./CallsApi.ts"
import { CatalogApi } from "./CatalogApi.ts"
import { ManageGate, ManageProblems } from "./ManageGate.ts"
import { ModelsApi } from "./ModelsApi.ts"
import { TasksApi } from "./TasksApi.ts"
import { UsersApi } from "./UsersApi.ts"
import { WalletApi } from "./WalletApi.ts"
import { WebhookDeliveriesApi } from "./WebhookDeliveriesApi.ts"
import { WebhookEndpointsApi } from "./WebhookEndpointsApi.ts"

/** As in package.json; a test compares them. */
const version = "0.1.0"

/** The management API. docs/reference/http.md#management-api */
export class Api extends HttpApi.make("manage")
  .add(UsersApi)
  .add(ApiKeysApi)
  .add(WalletApi)
  .add(CallsApi)
  .add(WebhookEndpointsApi)
  .add(TasksApi)
  .add(ModelsApi)
  .add(CatalogApi)
  .add(AccountsApi)
  .add(WebhookDeliveriesApi)
  .prefix("/manage/v1")
  .middleware(ManageGate)
  .middleware(ManageProblems)
  .annotate(HttpApi.PayloadParseOptions, bodyParseOptions)
  .annotate(HttpApi.QueryParseOptions, bodyParseOptions)
  .annotateMerge(OpenApi.annotations({ title: "Generation Gateway", version })) {}
