/// The date of an HTTP header (RFC 9110 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// Reads the one form that is sent today. The two of old (RFC 850, asctime) are read as no date.
package enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    private static let length = 29

    /// Seconds since the Unix epoch; nil when `text` is no date of this form.
    package static func seconds(_ text: some Collection<UInt8>) -> Int64? {
        let bytes = Array(text)
        guard bytes.count == length, bytes[3] == UInt8(ascii: ","), bytes.suffix(4).elementsEqual(" GMT".utf8),
            [4, 7, 11, 16].allSatisfy({ bytes[$0] == UInt8(ascii: " ") }),
            [19, 22].allSatisfy({ bytes[$0] == UInt8(ascii: ":") }),
            let month = months.firstIndex(where: { bytes[8..<11].elementsEqual($0.utf8) }),
            let day = number(bytes[5..<7]), let year = number(bytes[12..<16]), let hour = number(bytes[17..<19]),
            let minute = number(bytes[20..<22]), let second = number(bytes[23..<25]),
            (1...31).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        return days(year, Int64(month) + 1, day) * 86_400 + hour * 3600 + minute * 60 + second
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        var value: Int64 = 0
        for digit in digits {
            guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
            value = value * 10 + Int64(digit - UInt8(ascii: "0"))
        }
        return value
    }

    /// Days from 1970-01-01 to a day of the Gregorian calendar. Years are counted from March, so that the leap day is
    /// their last: 1970-01-01 is 0, 2000-03-01 is 11,017.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let fromMarch = (month + 9) % 12
        let shifted = year - (month <= 2 ? 1 : 0)
        let leaps = shifted / 4 - shifted / 100 + shifted / 400
        return shifted * 365 + leaps + (fromMarch * 306 + 5) / 10 + day - 1 - 719_468
    }
}
