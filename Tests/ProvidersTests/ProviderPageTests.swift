import Foundation
import Testing

/// docs/providers.md shows the tables of the code, so that neither can be changed alone.
@Suite struct ProviderPageTests {
    @Test func `the tables of the page are those of the code`() throws {
        let page = try String(contentsOf: ProviderPage.file, encoding: .utf8)
        let tables = ["APNs push types", "APNs answers", "token endpoint answers", "FCM answers"]
        #expect(ProviderPage.tables(of: page) == tables)
        let written = ProviderPage.markdown(of: page)
        if page != written {
            let new = FileManager.default.temporaryDirectory.appending(path: "providers.md")
            try written.write(to: new, atomically: true, encoding: .utf8)
            Issue.record("docs/providers.md is not what the tables say; the page as it should be: \(new.path)")
        }
    }

    @Test func `a table that does not exist or is not closed is noticed`() {
        #expect(ProviderPage.markdown(of: "<!-- table: x -->\n<!-- end of table -->").contains("there is no table x"))
        let open = "<!-- table: FCM answers -->\nprose"
        #expect(ProviderPage.markdown(of: open) != open)
    }
}
