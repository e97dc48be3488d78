import { useState } from "preact/hooks"
import { useAction } from "../../api/action.ts"
import { api } from "../../api/client.ts"
import { readEndpoints } from "../../api/lists.ts"
import { useLive } from "../../api/live.ts"
import { useResource } from "../../api/resource.ts"
import { Table } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { SecretDialog } from "../../components/Secret.tsx"
import { Empty, Loaded, ProblemView } from "../../components/States.tsx"
import { viewedUser } from "../../router/location.ts"
import { webhookTexts as words } from "../../texts/en/webhooks.ts"
import { endpointColumns } from "./endpointColumns.tsx"
import { EndpointDialogs } from "./EndpointDialogs.tsx"
import type { Asked, What } from "./EndpointDialogs.tsx"
import type { Endpoint } from "./endpointForm.ts"
import { WebhookTabs } from "./WebhookTabs.tsx"

/** `/webhooks`: the user's endpoints. */
export default function WebhooksPage() {
  const user = viewedUser()
  const endpoints = useResource(user ?? "", readEndpoints)
  const [asked, setAsked] = useState<Asked>(undefined)
  const [secret, setSecret] = useState<string | undefined>(undefined)
  const [resent, setResent] = useState<number | undefined>(undefined)
  const { cause, forget, run } = useAction()
  const [tests, setTests] = useState<ReadonlyMap<string, string>>(new Map())
  const test = async ({ id }: Endpoint) => {
    const sent = await api.POST("/manage/v1/webhook-endpoints/{id}/test", { path: { id } })
    setTests((now) => new Map([...now, [id, sent.delivery_id]]))
  }
  // The end of an attempt may change the state of its endpoint
  useLive((event) => {
    if (event.type === "delivery" && asked === undefined) endpoints.reload()
  })
  const isReadOnly = user !== undefined
  const act = (what: What, endpoint: Endpoint) => {
    forget()
    setResent(undefined)
    if (what === "test") void run(() => test(endpoint))
    else if (what === "resume") void run(() => resume(endpoint)).then(endpoints.reload)
    else setAsked({ what, endpoint })
  }
  return (
    <>
      <PageHeader about={words.about}>
        {!isReadOnly && (
          <button type="button" class="primary" onClick={() => setAsked({ what: "create" })}>
            {words.create}
          </button>
        )}
      </PageHeader>
      <WebhookTabs />
      {cause !== undefined && <ProblemView cause={cause} />}
      {resent !== undefined && (
        <p class="banner" role="status">
          {words.resent(resent)}
        </p>
      )}
      <Loaded of={endpoints}>
        {(all) => (
          <Table
            caption={words.endpoints}
            columns={endpointColumns({ tests, onAct: act, isReadOnly })}
            rows={all}
            idOf={({ id }) => id}
            empty={<Empty title={words.empty} detail={words.emptyDetail} />}
          />
        )}
      </Loaded>
      <EndpointDialogs
        asked={asked}
        onClose={() => setAsked(undefined)}
        onChanged={endpoints.reload}
        onSecret={setSecret}
        onResent={setResent}
      />
      {secret !== undefined && (
        <SecretDialog
          title={words.secretTitle}
          detail={words.secretDetail}
          what={words.secret}
          secret={secret}
          onClose={() => setSecret(undefined)}
        />
      )}
    </>
  )
}

const resume = ({ id }: Endpoint) =>
  api.PATCH("/manage/v1/webhook-endpoints/{id}", { path: { id }, body: { enabled: true } })
