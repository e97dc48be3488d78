import { useState } from "preact/hooks"
import { hasPasskeys } from "../../api/passkeys.ts"
import { service, session } from "../../api/session.ts"
import { DialogButton } from "../../components/form/DialogForm.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { viewedUser } from "../../router/location.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { PasskeyList } from "./PasskeyList.tsx"
import { PasswordDialog } from "./PasswordDialog.tsx"
import { SessionList } from "./SessionList.tsx"

const words = operatorTexts.sessions

/** `/sessions`: the user's sessions and means of signing in. */
export default function SessionsPage() {
  const user = viewedUser()
  const [changes, setChanges] = useState(0)
  const [removals, setRemovals] = useState(0)
  const who = session.value
  // A session of a key has no more permissions than the key
  const hasPassword = user === undefined && who?.role === "user" && who.method !== "api_key"
  return (
    <>
      <PageHeader about={user === undefined ? words.about : words.aboutUser}>
        {hasPassword && (
          <DialogButton label={words.changePassword}>
            {(close) => (
              <PasswordDialog onChanged={() => setChanges(changes + 1)} onClose={close} />
            )}
          </DialogButton>
        )}
      </PageHeader>
      <div role="status">{changes > 0 && <p>{words.passwordChanged}</p>}</div>
      <SessionList
        key={user}
        user={user}
        isReadOnly={user !== undefined}
        round={changes + removals}
      />
      {service.value?.passkeys === true && (hasPassword || user !== undefined) && (
        <PasskeyList
          key={`passkeys ${user}`}
          user={user}
          isReadOnly={user !== undefined || !hasPasskeys()}
          onRemoved={() => setRemovals(removals + 1)}
        />
      )}
    </>
  )
}
