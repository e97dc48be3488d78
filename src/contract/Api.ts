import { HttpApi } from "effect/http-api"
import { bodyParseOptions } from "../catalog/FieldFaults.ts"
import { ManageGate, ManageProblems } from "./Access.ts"
import { AccountsApi } from "./AccountsApi.ts"
import { ApiKeysApi } from "./ApiKeysApi.ts"
import { AuditApi } from "./AuditApi.ts"
import { BillsApi } from "./BillsApi.ts"
import { CallsApi } from "./CallsApi.ts"
import { CatalogApi } from "./CatalogApi.ts"
import { EventsApi } from "./EventsApi.ts"
import { ModelsApi } from "./ModelsApi.ts"
import { OperatorApi } from "./OperatorApi.ts"
import { PrivacyApi } from "./PrivacyApi.ts"
import { QueuesApi } from "./QueuesApi.ts"
import { SessionsApi } from "./SessionsApi.ts"
import { SignInApi } from "./SignInApi.ts"
import { TasksApi } from "./TasksApi.ts"
import { UsageApi } from "./UsageApi.ts"
import { UsersApi } from "./UsersApi.ts"
import { WalletApi } from "./WalletApi.ts"
import { WebhookDeliveriesApi } from "./WebhookDeliveriesApi.ts"
import { WebhookEndpointsApi } from "./WebhookEndpointsApi.ts"
import { WebhookSecretApi } from "./WebhookSecretApi.ts"

/** The management API. docs/reference/http.md#management-api */
export class Api extends HttpApi.make("manage")
  .add(UsersApi)
  .add(ApiKeysApi)
  .add(WalletApi)
  .add(CallsApi)
  .add(UsageApi)
  .add(BillsApi)
  .add(WebhookEndpointsApi)
  .add(WebhookSecretApi)
  .add(TasksApi)
  .add(ModelsApi)
  .add(CatalogApi)
  .add(AccountsApi)
  .add(WebhookDeliveriesApi)
  .add(AuditApi)
  .add(PrivacyApi)
  .add(QueuesApi)
  .add(OperatorApi)
  .add(SessionsApi)
  .add(EventsApi)
  .middleware(ManageGate)
  // Who signs in is nobody yet
  .add(SignInApi)
  .prefix("/manage/v1")
  .middleware(ManageProblems)
  .annotate(HttpApi.PayloadParseOptions, bodyParseOptions)
  .annotate(HttpApi.QueryParseOptions, bodyParseOptions) {}
