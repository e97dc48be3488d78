import { Array as Arr } from "effect"
import { HttpApi, OpenApi } from "effect/http-api"
import { shownEntry } from "../catalog/AliasTargets.ts"
import type { CatalogVersion } from "../catalog/CatalogContent.ts"
import { Api } from "./Api.ts"
import { BatchesApi } from "./BatchesApi.ts"
import { FilesApi } from "./FilesApi.ts"
import { generationGroups } from "./GenerationApi.ts"
import { ImagesApi } from "./ImagesApi.ts"
import { WebhooksApi } from "./manage/WebhooksApi.ts"
import { McpApi } from "./McpApi.ts"
import { MessageBatchesApi } from "./MessageBatchesApi.ts"
import { ResponsesApi } from "./ResponsesApi.ts"
import { ServiceApi } from "./ServiceApi.ts"
import { TaskBatchesApi } from "./TaskBatchesApi.ts"
import { aliasGroups, vendorGroups } from "./VendorApi.ts"
import { VideosApi } from "./VideosApi.ts"

/** Groups that share one tag of the document. */
const aliases = OpenApi.annotations({
  title: "Aliases",
  description: "Paths of OpenAI's and Anthropic's APIs"
})
const gateway = OpenApi.annotations({ title: "Gateway", description: "The gateway itself" })

/**
 * Every route of the service: the models and vendor routes of a catalog, the OpenAI-compatible routes, MCP, the
 * service's own routes, the management API, and the webhooks that receivers implement. ADR 0042
 */
export const gatewayApi = ({ aliases: models, all, upstream }: CatalogVersion) => {
  const ofCatalog = [
    ...generationGroups([...all, ...models.map(shownEntry)]),
    ...vendorGroups(upstream.routes),
    ...aliasGroups(upstream.routes).map((group) => group.annotateMerge(aliases))
  ]
  return HttpApi.make("gateway")
    .add(...Arr.append(ofCatalog, VideosApi.annotateMerge(aliases)))
    .add(ResponsesApi.annotateMerge(aliases))
    .add(FilesApi.annotateMerge(aliases))
    .add(BatchesApi.annotateMerge(aliases))
    .add(MessageBatchesApi.annotateMerge(aliases))
    .add(ImagesApi.annotateMerge(aliases))
    .add(McpApi.annotateMerge(gateway))
    .add(TaskBatchesApi.annotateMerge(gateway))
    .add(ServiceApi.annotateMerge(gateway))
    .addHttpApi(Api)
    .add(
      WebhooksApi.annotateMerge(
        OpenApi.annotations({ description: "What is sent to webhook endpoints" })
      )
    )
}
