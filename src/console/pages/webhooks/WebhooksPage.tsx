import { useState } from "preact/hooks"
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

/** The outcome of the last action. */
type Note = { readonly resent: number } | { readonly cause: unknown } | undefined

/** `/webhooks`: the user's endpoints. */
export default function WebhooksPage() {
  const user = viewedUser()
  const endpoints = useResource(user ?? "", readEndpoints)
  const [asked, setAsked] = useState<Asked>(undefined)
  const [secret, setSecret] = useState<string | undefined>(undefined)
  const [note, setNote] = useState<Note>(undefined)
  const [tests, setTests] = useState<ReadonlyMap<string, string>>(new Map())
  const test = async ({ id }: Endpoint) => {
    try {
      const sent = await api.POST("/manage/v1/webhook-endpoints/{id}/test", {
        path: { id }
      })
      setTests((now) => new Map([...now, [id, sent.delivery_id]]))
    } catch (cause) {
      setNote({ cause })
    }
  }
  // The end of an attempt may change the state of its endpoint
  useLive((event) => {
    if (event.type === "delivery" && asked === undefined) endpoints.reload()
  })
  const isReadOnly = user !== undefined
  const act = (what: What, endpoint: Endpoint) => {
    setNote(undefined)
    if (what === "test") void test(endpoint)
    else if (what === "resume") void resume(endpoint).then(setNote).then(endpoints.reload)
    else setAsked({ what, endpoint })
  }
  return (
    <>
      <PageHeader title={words.title} about={words.about}>
        {!isReadOnly && (
          <button type="button" class="primary" onClick={() => setAsked({ what: "create" })}>
            {words.create}
          </button>
        )}
      </PageHeader>
      <WebhookTabs />
      <NoteView note={note} />
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
        onResent={(resent) => setNote({ resent })}
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

const resume = async ({ id }: Endpoint): Promise<Note> => {
  try {
    await api.PATCH("/manage/v1/webhook-endpoints/{id}", {
      path: { id },
      body: { enabled: true }
    })
    return undefined
  } catch (cause) {
    return { cause }
  }
}

const NoteView = ({ note }: { readonly note: Note }) => {
  if (note === undefined) return null
  if ("cause" in note) return <ProblemView cause={note.cause} />
  return (
    <p class="banner" role="status">
      {words.resent(note.resent)}
    </p>
  )
}
