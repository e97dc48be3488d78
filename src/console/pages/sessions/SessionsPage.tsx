import { PageHeader } from "../../components/PageHeader.tsx"
import { viewedUser } from "../../router/location.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { SessionList } from "./SessionList.tsx"

const words = operatorTexts.sessions

/** `/sessions`: where one is signed in. */
export default function SessionsPage() {
  const user = viewedUser()
  return (
    <>
      <PageHeader title={words.title} about={user === undefined ? words.about : words.aboutUser} />
      <SessionList key={user} user={user} isReadOnly={user !== undefined} />
    </>
  )
}
